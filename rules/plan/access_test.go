package plan_test

import (
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

func TestHandled(t *testing.T) {
	// The numbers are the masks of linux/landlock.h, written out.
	tests := []struct {
		abi  int
		want plan.Access
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
		if got := plan.Handled(tt.abi); got != tt.want {
			t.Errorf("Handled(%d) = %#x, want %#x", tt.abi, uint64(got), uint64(tt.want))
		}
	}
}

func TestAccessNames(t *testing.T) {
	tests := []struct {
		access plan.Access
		want   string
	}{
		{0, ""},
		{plan.ReadOnly, "execute,read_file,read_dir"},
		{plan.Handled(1), "execute,write_file,read_file,read_dir,remove_dir,remove_file,make_char,make_dir,make_reg,make_sock,make_fifo,make_block,make_sym"},
		{plan.Refer | plan.Truncate | plan.IoctlDev | plan.ResolveUnix, "refer,truncate,ioctl_dev,resolve_unix"},
		// What is granted on ordinary directories makes no device node and no
		// ioctl on a device.
		{plan.Full, "execute,write_file,read_file,read_dir,remove_dir,remove_file,make_dir,make_reg,make_sock,make_fifo,make_sym,refer,truncate,resolve_unix"},
	}
	for _, tt := range tests {
		if got := tt.access.String(); got != tt.want {
			t.Errorf("%#x is %q, want %q", uint64(tt.access), got, tt.want)
		}
	}
}
