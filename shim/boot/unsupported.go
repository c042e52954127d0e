//go:build linux && !amd64 && !arm64

package boot

// There is no entry point for this architecture, and a shim without it would
// lose the caller's state without a word.
var _ = sandbox_exec_shim_supports_linux_on_amd64_and_arm64_only
