package main

import "regexp"

// stamp is how the build writes the version into the shim. A shim reads no
// flag, so it cannot be asked.
var stamp = regexp.MustCompile(`sandbox-exec-shim-version=([0-9A-Za-z.+-]{1,64});`)

// shimVersion returns the version of the shim at the site, or "" when its
// binary does not tell.
func (s *site) shimVersion() string {
	data, err := s.dir.read(s.name)
	if err != nil {
		return ""
	}
	m := stamp.FindSubmatch(data)
	if m == nil {
		return ""
	}
	return string(m[1])
}
