package tidb

import (
	"context"
	"fmt"
	"net"
	"strings"

	"windlass.dev/lab/tidb-standin/program"
)

// listen greets MySQL's clients, and then says that no query is answered here.
func (s *server) listen(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen at %s: %w", address, err)
	}
	go func() {
		<-ctx.Done()
		_ = listener.Close()
	}()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.greet(connection)
		}
	}()
	return nil
}

func (s *server) greet(connection net.Conn) {
	defer connection.Close()
	s.connections.Add(1)
	defer s.connections.Add(-1)
	if _, err := connection.Write(packet(0, greeting(s.version()))); err != nil {
		return
	}
	// Whatever comes, log-in or the end, is the last that is read.
	if _, err := connection.Read(make([]byte, 4096)); err != nil {
		return
	}
	_, _ = connection.Write(packet(2, refusal("this is "+program.Notice)))
}

// packet frames a message of MySQL's protocol.
func packet(number byte, body []byte) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), number}, body...)
}

// greeting is the first message of a server, of version 10.
func greeting(version string) []byte {
	body := append([]byte{10}, version...)
	body = append(body, 0, 1, 0, 0, 0)                      // connection 1
	body = append(body, strings.Repeat("s", 8)...)          // first part of a salt
	body = append(body, 0, 0x00, 0x82, 0x2d, 0x02, 0, 0x08) // capabilities, character set, status
	body = append(body, 0x00, 21)
	body = append(body, make([]byte, 10)...)
	body = append(body, strings.Repeat("t", 12)...)
	return append(append(body, 0), "mysql_native_password\x00"...)
}

// refusal is an error message, with the number of an unknown error.
func refusal(text string) []byte {
	return append([]byte{0xff, 0x51, 0x04, '#', 'H', 'Y', '0', '0', '0'}, text...)
}
