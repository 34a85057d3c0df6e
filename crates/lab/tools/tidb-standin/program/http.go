package program

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"
)

// Serve answers HTTP at an address until the context ends. It returns once the address is bound. A hanging stand-in answers nothing but
// the request that lets it go on.
func Serve(ctx context.Context, address string, security Security, faults *Faults, handler http.Handler) error {
	config, err := security.Config()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen at %s: %w", address, err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{Handler: faults.Around(handler), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	go func() {
		if err := server.Serve(listener); err != http.ErrServerClosed {
			log.Printf("the server at %s ended: %v", address, err)
		}
	}()
	return nil
}

// NewHTTPClient is one for the cluster's components.
func NewHTTPClient(security Security, timeout time.Duration) (*http.Client, error) {
	config, err := security.Config()
	if err != nil {
		return nil, err
	}
	// No proxy: whoever is asked is in the same cluster.
	return &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 4}}, nil
}

// Reply answers with JSON.
func Reply(writer http.ResponseWriter, code int, body any) {
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(code)
	if err := json.NewEncoder(writer).Encode(body); err != nil {
		log.Printf("an answer could not be sent: %v", err)
	}
}

// Read decodes a request's JSON body, or answers that it cannot.
func Read(writer http.ResponseWriter, request *http.Request, body any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(writer, request.Body, 16<<20))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(body); err != nil {
		Reply(writer, http.StatusBadRequest, map[string]string{"error": fmt.Sprintf("the request's body cannot be read: %v", err)})
		return false
	}
	return true
}
