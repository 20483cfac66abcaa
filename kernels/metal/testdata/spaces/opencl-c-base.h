// Empty, in place of the compiler's own: metal_stdlib has the types.
