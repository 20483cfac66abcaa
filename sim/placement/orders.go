package placement

import (
	"cmp"
	"slices"
)

const (
	// partners is the number of closest partners of each unit that one round of linking considers.
	partners = 16
	// mostRounds bounds the rounds of linking.
	mostRounds = 8
)

// hotFirst lists units by their number of sets, descending, then by number.
func hotFirst(s *sets) []uint32 {
	list := make([]uint32, s.units)
	for u := range list {
		list[u] = uint32(u)
	}
	slices.SortStableFunc(list, func(a, b uint32) int { return cmp.Compare(s.uses[b], s.uses[a]) })
	return list
}

// linear places units that are read together next to each other, each once, as Ripple does (arXiv
// 2410.19274). It links pairs greedily, the most frequent first. A unit has at most two neighbours,
// and no ring closes. The chains then follow each other, the chain with the most used units first.
// Every link saves one joined read in each set that has both ends. The greedy rule therefore
// approximates the heaviest path.
//
// To bound memory, a round considers the 16 closest partners of each unit. If all of these are
// taken, the next round considers the 16 closest among the ends of chains. It stops when nothing is
// linked, or after 8 rounds.
func linear(s *sets) []uint32 {
	c := newChains(s.units)
	ends := make([]bool, s.units)
	for u := range ends {
		ends[u] = s.uses[u] > 0
	}
	for range mostRounds {
		linked := false
		for _, p := range heaviest(s.closest(partners, ends)) {
			linked = c.link(p.a, p.b) || linked
		}
		if !linked {
			break
		}
		for u := range ends {
			ends[u] = ends[u] && c.degree[u] < 2
		}
	}
	return c.list(s.uses)
}

// pair is two units, a below b, that are in count sets together.
type pair struct{ count, a, b uint32 }

// heaviest lists the pairs of friends, the most frequent first.
func heaviest(friends []friend) []pair {
	const k = partners
	var pairs []pair
	for i, f := range friends {
		if f.count > 0 {
			u := uint32(i / k)
			pairs = append(pairs, pair{f.count, min(u, f.unit), max(u, f.unit)})
		}
	}
	slices.SortFunc(pairs, func(x, y pair) int {
		return cmp.Or(cmp.Compare(y.count, x.count), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	return pairs
}

// chains are rows of units: a union-find forest over them, and the neighbours of each.
type chains struct {
	parent []uint32
	degree []uint8
	beside [][2]uint32
}

func newChains(units int) *chains {
	c := &chains{parent: make([]uint32, units), degree: make([]uint8, units),
		beside: make([][2]uint32, units)}
	for u := range c.parent {
		c.parent[u] = uint32(u)
	}
	return c
}

func (c *chains) root(u uint32) uint32 {
	for c.parent[u] != u {
		c.parent[u] = c.parent[c.parent[u]]
		u = c.parent[u]
	}
	return u
}

// link makes two units neighbours. It reports whether it could: both must be ends, of two chains.
func (c *chains) link(a, b uint32) bool {
	if c.degree[a] == 2 || c.degree[b] == 2 {
		return false
	}
	ra, rb := c.root(a), c.root(b)
	if ra == rb {
		return false
	}
	c.parent[ra] = rb
	c.beside[a][c.degree[a]], c.beside[b][c.degree[b]] = b, a
	c.degree[a]++
	c.degree[b]++
	return true
}

// list puts the chains one after the other, by the mean uses of their units, then by the lower end.
func (c *chains) list(uses []uint32) []uint32 {
	type chain struct {
		mean  float64
		units []uint32
	}
	var all []chain
	seen := make([]bool, len(c.parent))
	for u := range uint32(len(c.parent)) {
		if c.degree[u] == 2 || seen[u] {
			continue
		}
		units := c.walk(u)
		sum := 0.0
		for _, v := range units {
			seen[v] = true
			sum += float64(uses[v])
		}
		all = append(all, chain{sum / float64(len(units)), units})
	}
	slices.SortStableFunc(all, func(x, y chain) int { return cmp.Compare(y.mean, x.mean) })
	list := make([]uint32, 0, len(c.parent))
	for _, ch := range all {
		list = append(list, ch.units...)
	}
	return list
}

// walk lists a chain from one of its ends.
func (c *chains) walk(end uint32) []uint32 {
	units := []uint32{end}
	for at := end; ; {
		next, found := at, false
		for _, v := range c.beside[at][:c.degree[at]] {
			if len(units) < 2 || v != units[len(units)-2] {
				next, found = v, true
			}
		}
		if !found {
			return units
		}
		units = append(units, next)
		at = next
	}
}
