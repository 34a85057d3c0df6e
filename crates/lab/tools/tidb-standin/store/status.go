package store

import (
	"fmt"
	"net/http"

	"windlass.dev/lab/tidb-standin/program"
)

// serveStatus is what people, PD and the operator see.
func (s *Store) serveStatus() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.onStatus)
	mux.HandleFunc("GET /metrics", s.onMetrics)
	mux.HandleFunc("GET /config", onConfig)
	mux.HandleFunc("/standin/speed", s.serveSpeed)
	mux.HandleFunc("POST /standin/hold", s.onHold)
	mux.HandleFunc("GET /standin/regions", s.onRegions)
	if s.options.engine != "" {
		// It is served from when PD has the store, and regions can arrive from then on.
		mux.HandleFunc("GET /tiflash/store-status", func(writer http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(writer, "Running")
		})
	}
	return mux
}

func (s *Store) onStatus(writer http.ResponseWriter, _ *http.Request) {
	regions, leaders := s.count()
	program.Reply(writer, http.StatusOK, map[string]any{
		"standin": program.Notice,
		"program": s.program.Name,
		"version": s.program.Version,
		"store":   s.id,
		"regions": regions,
		"leaders": leaders,
	})
}

// onMetrics tells the two numbers that an operator waits for.
func (s *Store) onMetrics(writer http.ResponseWriter, _ *http.Request) {
	regions, leaders := s.count()
	writer.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(writer, `# HELP tikv_raftstore_region_count Number of regions collected in region_collector
# TYPE tikv_raftstore_region_count gauge
tikv_raftstore_region_count{type="leader"} %d
tikv_raftstore_region_count{type="region"} %d
`, leaders, regions)
}

// onConfig is what PD reads to learn how large regions may become.
func onConfig(writer http.ResponseWriter, _ *http.Request) {
	program.Reply(writer, http.StatusOK, map[string]any{
		"coprocessor": map[string]any{
			"region-max-size":   "144MiB",
			"region-split-size": "96MiB",
			"region-max-keys":   1_440_000,
			"region-split-keys": 960_000,
		},
		"storage": map[string]any{"engine": "raft-kv"},
	})
}

// onHold keeps one region here, whatever PD orders: a drain comes to its last region, and no other region waits for it.
func (s *Store) onHold(writer http.ResponseWriter, request *http.Request) {
	var wanted struct {
		Region uint64 `json:"region"`
	}
	if !program.Read(writer, request, &wanted) {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.held = wanted.Region
	program.Reply(writer, http.StatusOK, wanted)
}

// onRegions tells all that this store knows about its regions.
func (s *Store) onRegions(writer http.ResponseWriter, _ *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	program.Reply(writer, http.StatusOK, s.replicas)
}
