package store

import (
	"testing"
	"time"
)

func TestPaceKeepsOrderAndSpeed(t *testing.T) {
	p := newPace(20)
	passed := make(chan int)
	began := time.Now()
	for number := range 5 {
		p.pass(func() { passed <- number })
	}
	for expected := range 5 {
		if number := <-passed; number != expected {
			t.Fatalf("%d came in place of %d", number, expected)
		}
	}
	// The first passes at once, each of the other four after a twentieth of a second.
	if took := time.Since(began); took < 190*time.Millisecond {
		t.Errorf("five passed in %v", took)
	}
}

func TestPaceStandsStillAtZeroUntilItIsSet(t *testing.T) {
	p := newPace(0)
	passed := make(chan struct{}, 1)
	p.pass(func() { passed <- struct{}{} })
	select {
	case <-passed:
		t.Fatal("something passed")
	case <-time.After(100 * time.Millisecond):
	}
	p.set(100)
	select {
	case <-passed:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing passed after the speed was set")
	}
}
