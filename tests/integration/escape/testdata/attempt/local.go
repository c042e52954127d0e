package main

import (
	"golang.org/x/sys/unix"
)

// Unix sockets of a process outside.
func init() {
	stream := func(name func(*w) string) func(*w) error {
		return func(w *w) error {
			return connect(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: name(w)})
		}
	}
	add(abstract,
		attempt{Name: "abstract-stream", do: stream(func(w *w) string { return w.World.Name })},
		attempt{Name: "abstract-datagram", do: func(w *w) error {
			return socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0, func(fd int) error {
				return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: w.Post})
			})
		}},
		attempt{Name: "abstract-datagram-connect", do: func(w *w) error {
			return connect(unix.AF_UNIX, unix.SOCK_DGRAM, 0, &unix.SockaddrUnix{Name: w.Post})
		}},
		attempt{Name: "abstract-datagram-of-a-pair", do: func(w *w) error { return byPair(unix.SOCK_DGRAM, w.Post) }},
	)
	add(unixSocket,
		attempt{Name: "unix-stream", do: stream(func(w *w) string { return w.Path })},
		attempt{Name: "unix-socket", do: func(*w) error { return onlySocket(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0) }},
		attempt{Name: "unix-datagram", do: func(w *w) error {
			return socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0, func(fd int) error {
				return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: w.Path + "-post"})
			})
		}},
		attempt{Name: "unix-datagram-of-a-pair", do: func(w *w) error { return byPair(unix.SOCK_DGRAM, w.Path+"-post") }},
		attempt{Name: "unix-raw-of-a-pair", do: func(w *w) error { return byPair(unix.SOCK_RAW, w.Path+"-post") }},
	)
	add(hidden,
		attempt{Name: "connect-hidden-socket", Limit: "Unix sockets by path", do: stream(func(w *w) string { return w.at("hidden/socket") })},
		attempt{Name: "connect-hidden-datagram", Limit: "Unix sockets by path", do: func(w *w) error {
			return socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0, func(fd int) error {
				return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: w.at("hidden/post")})
			})
		}},
		attempt{Name: "open-as-place", Limit: "Metadata", do: func(w *w) error { return opened(place(w.key())) }},
	)
}

// byPair sends to an address by one socket of a pair.
func byPair(kind int, to string) error {
	p, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	// A connected socket may be connected again (unix(7)).
	return unix.Connect(p[0], &unix.SockaddrUnix{Name: to})
}
