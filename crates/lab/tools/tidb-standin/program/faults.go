package program

import (
	"fmt"
	"log"
	"maps"
	"net/http"
	"sync"
	"time"
)

// Hang is the fault that every stand-in knows: it does and answers nothing more, and keeps its connections.
const Hang = "hang"

// faultsPath is where faults are read and set; it answers whatever the faults are.
const faultsPath = "/standin/faults"

// Faults are what a stand-in is told to do wrong.
type Faults struct {
	mutex   sync.Mutex
	present map[string]bool
}

// NewFaults knows the fault `hang` and those named; none is present yet.
func NewFaults(known ...string) *Faults {
	present := map[string]bool{Hang: false}
	for _, name := range known {
		present[name] = false
	}
	return &Faults{present: present}
}

// Has says whether a fault is present.
func (f *Faults) Has(name string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.present[name]
}

func (f *Faults) set(wanted map[string]bool) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for name := range wanted {
		if _, known := f.present[name]; !known {
			return fmt.Errorf("there is no fault %q here", name)
		}
	}
	maps.Copy(f.present, wanted)
	log.Printf("faults are now %v", f.present)
	return nil
}

// Around serves the faults beside a handler, and holds the handler back while it hangs.
func (f *Faults) Around(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == faultsPath {
			f.serve(writer, request)
			return
		}
		for f.Has(Hang) {
			select {
			case <-request.Context().Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		handler.ServeHTTP(writer, request)
	})
}

// serve tells the faults, and changes those that a POST names.
func (f *Faults) serve(writer http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodPost {
		wanted := map[string]bool{}
		if !Read(writer, request, &wanted) {
			return
		}
		if err := f.set(wanted); err != nil {
			Reply(writer, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
	}
	f.mutex.Lock()
	present := maps.Clone(f.present)
	f.mutex.Unlock()
	Reply(writer, http.StatusOK, present)
}
