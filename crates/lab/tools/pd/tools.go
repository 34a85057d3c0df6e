//go:build tools

// Package tools names the command that the lab builds, so that `go mod tidy` keeps its requirements.
package tools

import (
	_ "github.com/tikv/pd/cmd/pd-server"
)
