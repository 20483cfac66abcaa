package placement

// friend is a unit that shares count sets with another unit. A count of 0 means that there is none.
type friend struct{ unit, count uint32 }

// closest finds for every unit the k units that share the most sets with it, the most frequent
// first, then by number. The friends of unit u are at u·k … u·k+k−1. Only units of among are
// considered; nil stands for all.
//
// Counts are exact over the lists. They are taken one unit at a time, from the sets of the unit.
// Memory is one row of counts, not a matrix of units² (1 GiB for 16,384 units). The time is that of
// Σ |set|² increments.
func (s *sets) closest(k int, among []bool) []friend {
	friends := make([]friend, s.units*k)
	sets, starts := s.memberships(among)
	counts := make([]uint32, s.units)
	for u := range s.units {
		top := friends[u*k : (u+1)*k]
		mine := sets[starts[u]:starts[u+1]]
		touched := 0
		for _, set := range mine {
			for _, other := range s.lists[set] {
				counts[other]++
			}
			touched += len(s.lists[set])
		}
		counts[u] = 0
		if touched > s.units {
			for other, n := range counts {
				if n > 0 && n >= top[k-1].count && (among == nil || among[other]) {
					insert(top, friend{uint32(other), n})
				}
			}
			clear(counts)
			continue
		}
		for _, set := range mine {
			for _, other := range s.lists[set] {
				if n := counts[other]; n > 0 && (among == nil || among[other]) {
					insert(top, friend{other, n})
				}
				counts[other] = 0 // considered once, however many sets it is in
			}
		}
	}
	return friends
}

// memberships lists the sets of every unit of among: sets[starts[u]:starts[u+1]].
func (s *sets) memberships(among []bool) (sets []int32, starts []int) {
	starts = make([]int, s.units+1)
	for _, list := range s.lists {
		for _, u := range list {
			if among == nil || among[u] {
				starts[u+1]++
			}
		}
	}
	for u := range s.units {
		starts[u+1] += starts[u]
	}
	sets = make([]int32, starts[s.units])
	next := append([]int(nil), starts...)
	for i, list := range s.lists {
		for _, u := range list {
			if among == nil || among[u] {
				sets[next[u]] = int32(i)
				next[u]++
			}
		}
	}
	return sets, starts
}

// insert puts a friend into a list of the closest ones and drops the last. The result does not
// depend on the order of insertions.
func insert(top []friend, f friend) {
	i := len(top) - 1
	if !f.closer(top[i]) {
		return
	}
	for ; i > 0 && f.closer(top[i-1]); i-- {
		top[i] = top[i-1]
	}
	top[i] = f
}

func (f friend) closer(g friend) bool {
	if f.count != g.count {
		return f.count > g.count
	}
	return f.unit < g.unit
}
