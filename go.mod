module github.com/sandbox-exec-shim/sandbox-exec-shim

go 1.26.0

require golang.org/x/sys v0.50.0 // indirect
