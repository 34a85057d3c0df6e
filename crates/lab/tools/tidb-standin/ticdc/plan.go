package ticdc

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"windlass.dev/lab/tidb-standin/program"
)

// plan is how many tables there are, and how many of them can move in a second.
type plan struct {
	tables int
	speed  float64
}

func readPlan() (plan, error) {
	count, speed := program.Setting("STANDIN_TABLES", "6"), program.Setting("STANDIN_TABLES_PER_SECOND", "5")
	number, err := strconv.Atoi(count)
	if err != nil || number < 0 {
		return plan{}, fmt.Errorf("STANDIN_TABLES is %q: it must be a number, 0 or more", count)
	}
	rate, err := strconv.ParseFloat(speed, 64)
	if err != nil || !(rate >= 0) {
		return plan{}, fmt.Errorf("STANDIN_TABLES_PER_SECOND is %q: it must be a number, 0 or more", speed)
	}
	return plan{tables: number, speed: rate}, nil
}

// moves are what the owner does at a time.
type moves struct {
	// needed is where tables go whose capture is not there.
	needed map[string]string
	// gentle is where one table goes from a capture that still has it.
	gentle map[string]string
	// forgotten are captures that were to be emptied and are gone.
	forgotten []string
}

// moves decides who gets which table. Tables without a capture get one at once. If `due`, one table leaves a capture that is to be
// emptied, or one that has more than its share.
func (p plan) moves(now *view, due bool) moves {
	decided := moves{needed: map[string]string{}, gentle: map[string]string{}}
	load := map[string][]string{}
	for name := range now.captures {
		if !now.draining[name] {
			load[name] = nil
		}
	}
	var homeless, leaving []string
	for number := range p.tables {
		table := fmt.Sprintf("%04d", number)
		at, assigned := now.tables[table]
		if _, stays := load[at]; assigned && stays {
			load[at] = append(load[at], table)
		} else if _, there := now.captures[at]; assigned && there {
			leaving = append(leaving, table)
		} else {
			homeless = append(homeless, table)
		}
	}
	for name := range now.draining {
		if _, there := now.captures[name]; !there {
			decided.forgotten = append(decided.forgotten, name)
		}
	}
	if len(load) == 0 {
		return decided
	}
	names := slices.Sorted(maps.Keys(load))
	least := func() string {
		return slices.MinFunc(names, func(a, b string) int { return len(load[a]) - len(load[b]) })
	}
	for _, table := range homeless {
		to := least()
		decided.needed[table] = to
		load[to] = append(load[to], table)
	}
	most := slices.MaxFunc(names, func(a, b string) int { return len(load[a]) - len(load[b]) })
	switch to := least(); {
	case !due:
	case len(leaving) > 0:
		decided.gentle[leaving[0]] = to
	case len(load[most])-len(load[to]) > 1:
		decided.gentle[load[most][0]] = to
	}
	return decided
}
