// Package nearest finds the name nearest to a misspelt one. It is a leaf.
package nearest

import "strings"

// Name returns the candidate nearest to name, regardless of case, and its edit distance. It is the
// first candidate that starts with name (distance 0), else the first of those with the least
// distance. Without candidates it returns "" and -1.
func Name(name string, candidates []string) (best string, distance int) {
	name = strings.ToLower(strings.TrimSpace(name))
	distance = -1
	for _, c := range candidates {
		lower := strings.ToLower(c)
		if name != "" && strings.HasPrefix(lower, name) {
			return c, 0
		}
		if d := edits(name, lower); distance < 0 || d < distance {
			best, distance = c, d
		}
	}
	return best, distance
}

// Hint returns the end of an error about a misspelt name: "; did you mean NAME?", or "" if no
// candidate is near.
func Hint(name string, candidates []string) string {
	best, distance := Name(name, candidates)
	if best == "" || distance > max(len(name)/3, min(2, len(name)-1)) {
		return ""
	}
	return "; did you mean " + best + "?"
}

// edits returns the Levenshtein distance in bytes: insertions, deletions and replacements.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
