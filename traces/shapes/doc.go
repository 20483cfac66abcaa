// Package shapes has the shapes of published language models by name. A trace or a set of random
// weights can be made in the shape of a real model.
//
// The shapes are rows of models.csv, each with its source. Start with Lookup.
package shapes
