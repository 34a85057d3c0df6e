//go:build tools

// Package tools names the command that the lab builds, so that `go mod tidy` keeps its requirements.
package tools

import (
	_ "helm.sh/helm/v4/cmd/helm"
)
