package program

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Security names the files of a cluster with TLS between its components; empty without.
type Security struct {
	Authority, Certificate, Key string
}

// Enabled says whether the components talk by TLS.
func (s Security) Enabled() bool {
	return s.Certificate != ""
}

// Scheme is that of addresses of the cluster's components.
func (s Security) Scheme() string {
	if s.Enabled() {
		return "https"
	}
	return "http"
}

// Config is for both sides of a connection, as in the real programs: each shows its certificate and wants to see the other's.
// There is none without TLS.
func (s Security) Config() (*tls.Config, error) {
	if !s.Enabled() {
		return nil, nil
	}
	authority, err := os.ReadFile(s.Authority)
	if err != nil {
		return nil, fmt.Errorf("the certificate authority cannot be read: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", s.Authority)
	}
	// Read at each handshake: certificates are renewed while programs run.
	load := func() (*tls.Certificate, error) {
		certificate, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
		return &certificate, err
	}
	if _, err := load(); err != nil {
		return nil, fmt.Errorf("the certificate cannot be read: %w", err)
	}
	return &tls.Config{
		RootCAs:              pool,
		ClientCAs:            pool,
		ClientAuth:           tls.RequireAndVerifyClientCert,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() },
	}, nil
}
