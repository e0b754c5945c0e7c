// Package trace reads recorded workloads in the formats they are published in,
// writes them down, scales them and says what they hold.
//
// A reader is strict: what it cannot use is an error that names the line; what
// it assumes, estimates or leaves out is a warning of the [Trace]. Arrivals are
// shifted so that the first request comes at 0. Prompts whose tokens are known
// by hashes of blocks become segments of a block each; where there are token ids
// or text, the blocks are hashed here, each with everything before it.
//
// The formats, and what they count in:
//
//	infera         JSON lines under a header line; ns; everything a request has
//	mooncake       JSON lines or array; ms; hash ids of 512-token blocks
//	bailian        JSON lines or array; s; hash ids of 16-token blocks, conversations
//	azure          CSV TIMESTAMP, ContextTokens, GeneratedTokens; dates
//	burstgpt       CSV Timestamp, Request tokens, Response tokens, ...; s
//	llmservingsim  JSON lines or array; ns; optionally token ids
//	workload       CSV, JSON lines or array of arrival, isl, osl; ms
//	sharegpt       JSON array or lines of conversations; text, no arrivals
//	vllm           JSON lines or array of prompt, output_tokens or completion;
//	               text, no arrivals
//
// The package has no files and no clock: traces come as io.Reader. It knows
// nothing of engines; its cache is one that never forgets.
package trace
