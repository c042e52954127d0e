// Package launch starts real shims for the integration tests: it builds the
// static binaries, installs copies of them, and starts them with exactly the
// arguments, environment, descriptors, signals, limits and user that a test
// asks for.
//
// A test package that uses it needs
//
//	func TestMain(m *testing.M) { launch.Main(m) }
//
// since the test binary also starts itself as the stage between the test and
// the shim, in which a child is prepared ([Setup]).
package launch
