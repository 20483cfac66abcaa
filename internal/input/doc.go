// Package input reads the files that users name. A name may be that of a folder, of a pipe without
// a writer, of a device without an end, or of a file on a disk that does not answer.
//
//	ReadFile    a whole file of any kind, up to a limit
//	OpenStream  a file of any kind, from its start to its end
//	Open        a regular file, read at any position
//	DecodeJSON  a document in a file, whose refusals name line and path
//
// Invariants, for any file:
//
//  1. When its context ends, every function here returns, at once. A call of the system that does
//     not return is left behind on a goroutine of its own, which ends with the call or the process.
//  2. No more memory is taken than the limit allows, whatever size the file says it has.
//  3. A folder is refused by name, and a file of the wrong kind before it is opened.
//
// Files that this program made itself a moment ago need none of this. Start with input.go; file.go
// has the file that is read at any position.
package input
