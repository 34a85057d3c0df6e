package ticdc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/registry"
)

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.onStatus)
	mux.HandleFunc("GET /api/v1/status", s.onStatus)
	mux.HandleFunc("GET /api/v1/captures", s.byOwner(s.onCaptures))
	mux.HandleFunc("PUT /api/v1/captures/drain", s.byOwner(s.onDrain))
	mux.HandleFunc("POST /api/v1/owner/resign", s.byOwner(s.onResign))
	mux.HandleFunc("GET /api/v1/health", s.byOwner(s.onHealth))
	return mux
}

// fail answers as the real server does: with a code of its own beside the text.
func fail(writer http.ResponseWriter, status int, code, text string) {
	program.Reply(writer, status, map[string]string{"error_code": code, "error_msg": fmt.Sprintf("[%s]%s", code, text)})
}

func (s *server) onStatus(writer http.ResponseWriter, request *http.Request) {
	now, err := s.look(request.Context())
	if err != nil {
		fail(writer, http.StatusInternalServerError, "CDC:ErrPDEtcdAPIError", err.Error())
		return
	}
	count := 0
	for _, at := range now.tables {
		if at == s.self.ID {
			count++
		}
	}
	program.Reply(writer, http.StatusOK, map[string]any{
		"standin":     program.Notice,
		"version":     s.program.Version,
		"git_hash":    "stand-in",
		"id":          s.self.ID,
		"cluster_id":  "default",
		"pid":         os.Getpid(),
		"is_owner":    now.owner == s.self.ID,
		"liveness":    map[bool]int{false: 0, true: 1}[now.draining[s.self.ID]],
		"table_count": count,
	})
}

// byOwner has the owner answer: here, or by asking it.
func (s *server) byOwner(answer func(http.ResponseWriter, *http.Request, *view)) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		now, err := s.look(request.Context())
		switch {
		case err != nil:
			fail(writer, http.StatusInternalServerError, "CDC:ErrPDEtcdAPIError", err.Error())
		case now.owner == s.self.ID:
			answer(writer, request, now)
		case now.owner == "" || now.captures[now.owner].Address == "" || request.Header.Get(forwarded) != "":
			fail(writer, http.StatusServiceUnavailable, "CDC:ErrOwnerNotFound", "owner not found")
		default:
			s.proxy.forward(writer, request, now.captures[now.owner].Address)
		}
	}
}

func (s *server) onCaptures(writer http.ResponseWriter, _ *http.Request, now *view) {
	list := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(now.captures)) {
		list = append(list, map[string]any{
			"id": name, "is_owner": name == now.owner, "address": now.captures[name].Address, "cluster_id": "default",
		})
	}
	program.Reply(writer, http.StatusOK, list)
}

func (s *server) onDrain(writer http.ResponseWriter, request *http.Request, now *view) {
	var wanted struct {
		Capture string `json:"capture_id"`
	}
	if !program.Read(writer, request, &wanted) {
		return
	}
	_, there := now.captures[wanted.Capture]
	switch {
	case len(now.captures) <= 1:
		fail(writer, http.StatusBadRequest, "CDC:ErrSchedulerRequestFailed", "scheduler request failed, only one capture alive")
		return
	case !there:
		fail(writer, http.StatusBadRequest, "CDC:ErrCaptureNotExist", "capture not exists, "+wanted.Capture)
		return
	case wanted.Capture == s.self.ID:
		fail(writer, http.StatusBadRequest, "CDC:ErrSchedulerRequestFailed", "scheduler request failed, cannot drain the owner")
		return
	}
	ctx, cancel := context.WithTimeout(request.Context(), registry.Patience)
	defer cancel()
	if _, err := s.client.Put(ctx, draining+wanted.Capture, time.Now().UTC().Format(time.RFC3339)); err != nil {
		fail(writer, http.StatusInternalServerError, "CDC:ErrPDEtcdAPIError", err.Error())
		return
	}
	count := 0
	for _, at := range now.tables {
		if at == wanted.Capture {
			count++
		}
	}
	program.Reply(writer, http.StatusAccepted, map[string]int{"current_table_count": count})
}

func (s *server) onResign(writer http.ResponseWriter, _ *http.Request, _ *view) {
	s.owner.Yield()
	writer.WriteHeader(http.StatusAccepted)
}

func (s *server) onHealth(writer http.ResponseWriter, _ *http.Request, _ *view) {
	writer.WriteHeader(http.StatusOK)
}

// forwarded marks a request that another capture passed on, so that two who disagree about the owner do not pass it on for ever.
const forwarded = "X-Forward-From-TiCDC"

// forwarder passes requests on to the owner.
type forwarder struct {
	client *http.Client
	scheme string
}

func newForwarder(security program.Security) (forwarder, error) {
	client, err := program.NewHTTPClient(security, registry.Patience)
	return forwarder{client: client, scheme: security.Scheme()}, err
}

func (f forwarder) forward(writer http.ResponseWriter, request *http.Request, address string) {
	body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, 1<<20))
	if err != nil {
		fail(writer, http.StatusBadRequest, "CDC:ErrAPIInvalidParam", err.Error())
		return
	}
	url := fmt.Sprintf("%s://%s%s", f.scheme, address, request.URL.RequestURI())
	onward, err := http.NewRequestWithContext(request.Context(), request.Method, url, bytes.NewReader(body))
	if err != nil {
		fail(writer, http.StatusInternalServerError, "CDC:ErrRequestForwardErr", err.Error())
		return
	}
	onward.Header.Set(forwarded, "true")
	answer, err := f.client.Do(onward)
	if err != nil {
		fail(writer, http.StatusInternalServerError, "CDC:ErrRequestForwardErr", err.Error())
		return
	}
	defer answer.Body.Close()
	writer.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	writer.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(writer, answer.Body)
}
