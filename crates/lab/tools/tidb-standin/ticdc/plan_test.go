package ticdc

import (
	"maps"
	"slices"
	"testing"
)

func cluster(names ...string) *view {
	now := &view{captures: map[string]capture{}, tables: map[string]string{}, draining: map[string]bool{}}
	for _, name := range names {
		now.captures[name] = capture{ID: name}
	}
	return now
}

func TestTablesWithoutCaptureAreSharedOutAtOnce(t *testing.T) {
	now := cluster("a", "b")
	now.tables["0000"] = "gone"
	decided := plan{tables: 4}.moves(now, false)
	if len(decided.needed) != 4 || len(decided.gentle) != 0 {
		t.Fatalf("%+v", decided)
	}
	count := map[string]int{}
	for _, to := range decided.needed {
		count[to]++
	}
	if count["a"] != 2 || count["b"] != 2 {
		t.Errorf("%v", count)
	}
}

func TestACaptureIsEmptiedOneByOne(t *testing.T) {
	now := cluster("a", "b", "c")
	now.draining["a"] = true
	for _, table := range []string{"0000", "0001", "0002"} {
		now.tables[table] = "a"
	}
	steps := 0
	for ; slices.Contains(slices.Collect(maps.Values(now.tables)), "a"); steps++ {
		decided := plan{tables: 3}.moves(now, true)
		if len(decided.gentle) != 1 || len(decided.needed) != 0 {
			t.Fatalf("%+v", decided)
		}
		maps.Copy(now.tables, decided.gentle)
	}
	if steps != 3 {
		t.Errorf("emptied in %d steps", steps)
	}
	if decided := (plan{tables: 3}).moves(now, true); len(decided.gentle) != 0 {
		t.Errorf("a table came back: %+v", decided)
	}
}

func TestNobodyElseToTakeThem(t *testing.T) {
	now := cluster("a")
	now.draining["a"] = true
	now.tables["0000"] = "a"
	if decided := (plan{tables: 1}).moves(now, true); len(decided.gentle)+len(decided.needed) != 0 {
		t.Errorf("%+v", decided)
	}
}

func TestANewCaptureGetsItsShareAndADrainOfAGoneOneIsForgotten(t *testing.T) {
	now := cluster("a", "b")
	now.draining["gone"] = true
	now.tables["0000"], now.tables["0001"] = "a", "a"
	decided := plan{tables: 2}.moves(now, true)
	if len(decided.gentle) != 1 || !slices.Equal(decided.forgotten, []string{"gone"}) {
		t.Errorf("%+v", decided)
	}
}
