// Package network tries, against a listener that records, every way by which a
// confined program could send a byte off its process.
package network
