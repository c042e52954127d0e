// Package pathtest is a file system in memory for the tests of what decides
// about paths. It has what such decisions trip over: symlinks, hard links,
// devices, bind mounts and covered mounts, directories that may not be listed
// or searched, and changes in the middle of a walk.
//
// It is strict where the real tree is lenient: a name that is no single
// component, and the use of a closed node, panic. It is not safe for use by
// several goroutines.
package pathtest
