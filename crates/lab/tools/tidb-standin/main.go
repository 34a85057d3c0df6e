// Tidb-standin stands in for the programs of a TiDB cluster that cannot be built from packages. Beside the real PD they make a cluster
// that behaves, towards an operator, like the real one: stores register, regions move, leaders are evicted, captures are drained. No
// data is kept and no query is answered.
//
// It is started under the name of the program that it stands in for, or with that name as its first argument.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/pump"
	"windlass.dev/lab/tidb-standin/store"
	"windlass.dev/lab/tidb-standin/ticdc"
	"windlass.dev/lab/tidb-standin/tidb"
	"windlass.dev/lab/tidb-standin/tiproxy"
)

var programs = map[string]func([]string) error{
	"cdc":         ticdc.Run,
	"pump":        pump.Run,
	"tidb-server": tidb.Run,
	"tiflash":     store.RunTiFlash,
	"tikv-server": store.RunTiKV,
	"tiproxy":     tiproxy.Run,
}

func main() {
	name, arguments := filepath.Base(os.Args[0]), os.Args[1:]
	run, known := programs[name]
	if !known && len(arguments) > 0 {
		name, arguments = arguments[0], arguments[1:]
		run, known = programs[name]
	}
	if !known {
		fmt.Fprintf(os.Stderr, "say which program to stand in for: cdc, pump, tidb-server, tiflash, tikv-server or tiproxy\n")
		os.Exit(2)
	}
	if len(arguments) == 1 && (arguments[0] == "--version" || arguments[0] == "-V") {
		fmt.Printf("Release Version: %s\nThis is %s.\n", program.Version(), program.Notice)
		return
	}
	log.SetFlags(log.LstdFlags | log.Lmicroseconds | log.LUTC)
	err := run(arguments)
	switch {
	case errors.Is(err, context.Canceled):
		log.Print("told to end before it began")
	case err != nil:
		log.Fatalf("%s: %v", name, err)
	}
}
