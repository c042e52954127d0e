package rules

import (
	"slices"
	"strconv"
)

const (
	badNetwork     = `must be "allow", "deny" or an object with "udp", "connectTCP" and "bindTCP"`
	badPorts       = "must be a list of ports"
	badPort        = "must be a port from 0 to 65535"
	badIsolate     = `must be a list of "signals", "abstract-unix", "unix-sockets", "proc", "tty" and "ipc"`
	badIsolation   = `must be "signals", "abstract-unix", "unix-sockets", "proc", "tty" or "ipc"`
	badDescriptors = `must be "keep", "close" or an object with "keep"`
	badKeep        = "must be a list of descriptors above 2"
	badDescriptor  = "must be the number of a descriptor above 2"
	givenTwice     = "given twice"
)

// network reads the value of "network". In the object form "udp" must be given:
// whoever lists TCP ports should have thought of it.
func (r *jsonReader) network(key string) (Network, error) {
	if r.next() != '{' {
		s, err := r.choice(key, badNetwork, string(NetworkAllow), string(NetworkDeny))
		return Network{Mode: NetworkMode(s)}, err
	}
	n := Network{Mode: NetworkPorts}
	udp := ""
	err := r.object(key, badNetwork, func(name string) (err error) {
		at := joinKey(key, name)
		switch name {
		case "udp":
			udp, err = r.choice(at, `must be "allow" or "deny"`, "allow", "deny")
			n.UDP = udp == "allow"
		case "connectTCP":
			n.ConnectTCP, err = r.ports(at)
		case "bindTCP":
			n.BindTCP, err = r.ports(at)
		default:
			err = &Error{Key: at, Msg: unknownKey}
		}
		return err
	})
	if err == nil && udp == "" {
		err = &Error{Key: key + ".udp", Msg: "missing"}
	}
	if err != nil {
		return Network{}, err
	}
	return n, nil
}

// ports reads a list of ports and sorts it. The empty list is not nil: it
// forbids what a missing one leaves free.
func (r *jsonReader) ports(key string) ([]uint16, error) {
	numbers, err := r.numbers(key, badPorts, badPort, 0, 1<<16-1)
	ports := make([]uint16, 0, len(numbers))
	for _, n := range numbers {
		ports = append(ports, uint16(n))
	}
	return ports, err
}

// isolate reads the value of "isolate".
func (r *jsonReader) isolate(key string) (Isolation, error) {
	var set Isolation
	err := r.array(key, badIsolate, func(at string) error {
		name, err := r.text(at, badIsolation)
		if err != nil {
			return err
		}
		for _, known := range isolations {
			if known.name != name {
				continue
			}
			if set.Has(known.what) {
				return &Error{Key: at, Msg: givenTwice}
			}
			set |= known.what
			return nil
		}
		return &Error{Key: at, Msg: badIsolation}
	})
	return set, err
}

// descriptors reads the value of "descriptors".
func (r *jsonReader) descriptors(key string) (DescriptorPolicy, error) {
	if r.next() != '{' {
		s, err := r.choice(key, badDescriptors, string(DescriptorsKeep), string(DescriptorsClose))
		return DescriptorPolicy{Mode: DescriptorMode(s)}, err
	}
	d := DescriptorPolicy{Mode: DescriptorsList}
	given := false
	err := r.object(key, badDescriptors, func(name string) (err error) {
		at := joinKey(key, name)
		if name != "keep" {
			return &Error{Key: at, Msg: unknownKey}
		}
		given = true
		d.Keep, err = r.numbers(at, badKeep, badDescriptor, 3, 1<<31-1)
		return err
	})
	if err == nil && !given {
		err = &Error{Key: key + ".keep", Msg: "missing"}
	}
	if err != nil {
		return DescriptorPolicy{}, err
	}
	return d, nil
}

// numbers reads a list of different integers between low and high and sorts it.
func (r *jsonReader) numbers(key, badList, bad string, low, high int) ([]int, error) {
	var out []int
	err := r.array(key, badList, func(at string) error {
		start := r.pos
		if err := r.skip(1); err != nil {
			return err
		}
		text := string(r.data[start:r.pos])
		n, err := strconv.Atoi(text)
		// The comparison refuses 1e3, 1.0, -0 and what is no number.
		if err != nil || n < low || n > high || strconv.Itoa(n) != text {
			return &Error{Key: at, Msg: bad}
		}
		index, twice := slices.BinarySearch(out, n)
		if twice {
			return &Error{Key: at, Msg: givenTwice}
		}
		out = slices.Insert(out, index, n)
		return nil
	})
	return out, err
}
