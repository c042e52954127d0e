//go:build !nocommandcheck

package shim

import "testing"

func TestApplet(t *testing.T) {
	for _, row := range []struct {
		argv []string
		want string
	}{
		{nil, ""},
		{[]string{"/bin/sh", "-c", "x"}, "ash"},
		{[]string{"-bash"}, "ash"},
		{[]string{"hush"}, "hush"},
		{[]string{"busybox", "sh"}, "busybox"},
		{[]string{"/opt/busybox-1.36", "sh"}, "busybox"},
		{[]string{"cat"}, "cat"},
	} {
		if got := applet(row.argv); got != row.want {
			t.Errorf("applet(%q) = %q, want %q", row.argv, got, row.want)
		}
	}
}

func TestHomeIn(t *testing.T) {
	const passwd = "root:x:0:0:root:/root:/bin/sh\nshort:x:1:1\nrel:x:2:2::home:/bin/sh\na:b:x:3:3:::\nlast:x:4:4::/l:"
	for user, want := range map[string]string{"root": "/root", "short": "", "rel": "", "a": "", "last": "/l", "": "", "nobody": ""} {
		got, ok := homeIn(passwd, user)
		if got != want || ok != (want != "") {
			t.Errorf("homeIn(%q) = %q, %v, want %q", user, got, ok, want)
		}
	}
}
