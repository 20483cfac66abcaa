//go:build race

package flashio

const raceEnabled = true
