// Command mutants changes the product on purpose, one small edit at a time, and
// runs the tests of the package that promises the contrary. A test must go red:
// an edit that none notices is a survivor, and shows a promise without a test.
//
// The edits are the rows of the files *.txt beside it:
//
//	== what the edit breaks, a few words
//	why  what somebody would suffer, one line
//	file shim/internal/confine/prove.go
//	test ./shim/internal/confine TestProof
//	-the old text, which must occur once in the file,
//	-each line behind a minus
//	+the new text, which may be nothing
//
// A row has one line "test" or more: a package and, as for go test -run, the names
// of the tests that must go red. The tree is never touched: the compiler is given
// the changed file in the place of the real one (go build -overlay).
package main
