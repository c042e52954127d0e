package main

import "bytes"

// shimVersion returns the version of the shim at the site, or "" when its
// binary does not tell. A shim reads no flag, so it cannot be asked: the build
// puts the version into the binary between two fixed pieces of text.
func (s *site) shimVersion() string {
	data, err := s.dir.read(s.name)
	if err != nil {
		return ""
	}
	_, rest, ok := bytes.Cut(data, []byte("sandbox-exec-shim version <"))
	if !ok {
		return ""
	}
	const maxVersion = 64
	v, _, ok := bytes.Cut(rest[:min(len(rest), maxVersion)], []byte(">"))
	if !ok {
		return ""
	}
	return string(v)
}
