// Package kvcache is the paged key-value cache of one engine: how many blocks
// sequences hold, which blocks can be found again by content, and which are
// given up first.
//
// A block is BlockTokens tokens of every layer. Full blocks are known by a
// hash of their content and of everything before it, so that a prompt finds
// the longest leading run of its blocks that is still there. Blocks nobody
// holds stay findable until room is needed; they go in the order in which they
// were let go, the last block of a sequence first, so that no block outlives
// the ones before it. That is the order of vLLM's free queue, and of SGLang's
// radix tree, which drops the least recently used leaf.
//
// Content that no other request shares is only counted; a sequence that is put
// off and started again (Park) still finds what is left of its own. Layers with a sliding
// window or recurrent state take blocks too (Group) but are not addressed by
// content: a run that is found for the full layers counts as found for them.
//
// The package knows no time, no requests and no scheduling. Sizes are tokens
// and blocks; bytes belong to package memory.
package kvcache
