package fio

// lastReports returns the last report of every job of every host. A client with --status-interval
// lists all reports of a run one after the other in one list, without a mark between them. The
// second result is the number of entries that are left out.
func lastReports(list jobs) (jobs, int) {
	type key struct {
		host, port, name text
		group            int
	}
	at := map[key][]int{}
	var order []key
	for i := range list {
		j := &list[i]
		k := key{j.Host, j.Port, j.Name, j.Group.whole()}
		if at[k] == nil {
			order = append(order, k)
		}
		at[k] = append(at[k], i)
	}
	keep := make([]bool, len(list))
	left := 0
	for _, k := range order {
		places := at[k]
		n := 1
		if j := &list[places[0]]; k.name != allClients && j.Options != nil {
			if jobs := merged(nil, *j.Options).count("numjobs"); jobs != nil {
				n = *jobs
			}
		}
		// With group_reporting one entry is all jobs of a report, otherwise each has one.
		if n > 1 && (len(places)%n != 0 || grows(list, places)) {
			n = 1
		}
		for _, i := range places[max(len(places)-n, 0):] {
			keep[i] = true
		}
		left += max(len(places)-n, 0)
	}
	if left == 0 {
		return list, 0
	}
	kept := make(jobs, 0, len(list)-left)
	for i := range list {
		if keep[i] {
			kept = append(kept, list[i])
		}
	}
	return kept, left
}

// grows reports whether every entry is a later report of the one before: it ran longer and did
// more, or it is the same. Jobs side by side run equally long, and are never the same.
func grows(list jobs, places []int) bool {
	const longer = 1.05
	for i, place := range places[1:] {
		before, now := list[places[i]].progress(), list[place].progress()
		if now != before && !(now.runtime > longer*before.runtime && now.ios >= before.ios) {
			return false
		}
	}
	return true
}

// progress is how far a job has come.
type progress struct{ runtime, ios, mean float64 }

func (j *job) progress() (p progress) {
	for _, d := range []*direction{j.Read, j.Write, j.Trim, j.Mixed} {
		if d == nil {
			continue
		}
		p.runtime, p.ios = max(p.runtime, d.Runtime.v), p.ios+d.IOs.v
		if d.ClatNs != nil {
			p.mean += d.ClatNs.Mean.v
		}
	}
	return p
}
