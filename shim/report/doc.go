// Package report is the record that a launch leaves: its type, and how it is written.
//
// A harness may import it to read reports. What is exported here, and what its JSON
// keys mean, stays as it is within a major version; keys may be added.
//
// A report says what the shim did and found. It cannot say what the program did
// afterwards.
package report
