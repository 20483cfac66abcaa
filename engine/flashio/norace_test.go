//go:build !race

package flashio

const raceEnabled = false
