// Package measured finds the folder of public measurements that may lie beside
// the repository, for tests that check against it. Only tests import it.
package measured
