package rules_test

import (
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

func TestHandled(t *testing.T) {
	// The numbers are the masks of linux/landlock.h, written out.
	tests := []struct {
		abi  int
		want rules.Access
	}{
		{-1, 0},
		{0, 0},
		{1, 0x1fff},
		{2, 0x3fff},
		{3, 0x7fff},
		{4, 0x7fff},
		{5, 0xffff},
		{8, 0xffff},
		{9, 0x1ffff},
		{100, 0x1ffff},
	}
	for _, tt := range tests {
		if got := rules.Handled(tt.abi); got != tt.want {
			t.Errorf("Handled(%d) = %#x, want %#x", tt.abi, uint64(got), uint64(tt.want))
		}
	}
}

func TestAccessNames(t *testing.T) {
	tests := []struct {
		access rules.Access
		want   string
	}{
		{0, ""},
		{rules.ReadOnly, "execute,read_file,read_dir"},
		{rules.Handled(1), "execute,write_file,read_file,read_dir,remove_dir,remove_file,make_char,make_dir,make_reg,make_sock,make_fifo,make_block,make_sym"},
		{rules.Refer | rules.Truncate | rules.IoctlDev | rules.ResolveUnix, "refer,truncate,ioctl_dev,resolve_unix"},
		// What is granted on ordinary directories makes no device node and no
		// ioctl on a device.
		{rules.Full, "execute,write_file,read_file,read_dir,remove_dir,remove_file,make_dir,make_reg,make_sock,make_fifo,make_sym,refer,truncate,resolve_unix"},
	}
	for _, tt := range tests {
		if got := tt.access.String(); got != tt.want {
			t.Errorf("%#x is %q, want %q", uint64(tt.access), got, tt.want)
		}
	}
}
