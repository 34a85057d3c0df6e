package store

import (
	"fmt"
	"log"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"windlass.dev/lab/tidb-standin/program"
)

// pace lets things through one by one, in the order in which they came, so many in a second. None at all is a pace, too.
type pace struct {
	mutex   sync.Mutex
	waiting []func()
	rate    float64
	last    time.Time
	changed chan struct{}
}

func newPace(rate float64) *pace {
	p := &pace{rate: rate, changed: make(chan struct{}, 1)}
	go p.run()
	return p
}

// defaultRate is what the environment says, or quick.
func defaultRate() (float64, error) {
	text := program.Setting("STANDIN_REGIONS_PER_SECOND", "50")
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !isRate(rate) {
		return 0, fmt.Errorf("STANDIN_REGIONS_PER_SECOND is %q: it must be a number, 0 or more", text)
	}
	return rate, nil
}

func isRate(rate float64) bool {
	return rate >= 0 && !math.IsInf(rate, 0) && !math.IsNaN(rate)
}

// pass calls `then` when its turn has come.
func (p *pace) pass(then func()) {
	p.mutex.Lock()
	p.waiting = append(p.waiting, then)
	p.mutex.Unlock()
	p.wake()
}

func (p *pace) set(rate float64) {
	p.mutex.Lock()
	p.rate = rate
	p.mutex.Unlock()
	p.wake()
}

func (p *pace) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *pace) run() {
	for {
		next, wait := p.next()
		if next != nil {
			next()
			continue
		}
		select {
		case <-p.changed:
		case <-time.After(wait):
		}
	}
}

// next is whoever may pass now, or how long to wait for a change.
func (p *pace) next() (func(), time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.waiting) == 0 || p.rate == 0 {
		return nil, time.Minute
	}
	interval := time.Duration(float64(time.Second) / p.rate)
	if wait := time.Until(p.last.Add(interval)); wait > 0 {
		return nil, wait
	}
	first := p.waiting[0]
	p.waiting, p.last = p.waiting[1:], time.Now()
	return first, 0
}

// speed is how it is told over HTTP.
type speed struct {
	RegionsPerSecond float64 `json:"regionsPerSecond"`
}

// serveSpeed tells how many regions a second this store gives away and takes in, and changes that by a POST.
func (s *Store) serveSpeed(writer http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodPost {
		var wanted speed
		if !program.Read(writer, request, &wanted) {
			return
		}
		if !isRate(wanted.RegionsPerSecond) {
			program.Reply(writer, http.StatusBadRequest, map[string]string{"error": "regionsPerSecond must be 0 or more"})
			return
		}
		s.giving.set(wanted.RegionsPerSecond)
		s.taking.set(wanted.RegionsPerSecond)
		log.Printf("the speed is now %v regions a second", wanted.RegionsPerSecond)
	}
	s.giving.mutex.Lock()
	current := speed{RegionsPerSecond: s.giving.rate}
	s.giving.mutex.Unlock()
	program.Reply(writer, http.StatusOK, current)
}
