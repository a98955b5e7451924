// How an attention step is cut into calls of the kernel, and those among workers.
#pragma once

#include "model/exec.h"

namespace stoker::model {

/// The positions that the query at `position` of a sequence of `length` sees, where it sees all of them.
inline Range seen_by(const AttentionSpec& a, int64_t position, int64_t length) noexcept {
  if (a.chunked && a.window != 0) return {position / a.window * a.window, position + 1};
  if (a.causal) return {a.window ? std::max<int64_t>(0, position + 1 - a.window) : 0, position + 1};
  if (a.window == 0) return {0, length};
  return {std::max<int64_t>(0, position - a.window / 2), std::min(length, position + a.window / 2 + 1)};
}

struct Cut {
  int64_t heads;   ///< Query heads per call.
  int64_t tokens;  ///< Neighbouring tokens per call.
  int64_t parts;   ///< Calls per token block: group / heads, rounded up.
};

/// Queries that read the same K and V: heads of one key-value head, of neighbouring tokens of a sequence.
struct AttentionCall {
  const RowSpan* span;
  int64_t kv_head;
  Range tokens;  ///< In the span.
  Range heads;
  int n_queries() const { return static_cast<int>(tokens.size() * heads.size()); }
  /// The tiles that its queries see.
  Range tiles(const AttentionSpec& spec) const noexcept;
};

/// All calls of a step.
struct AttentionCalls {
  const AttentionSpec& spec;
  std::span<const RowSpan> spans;
  Cut cut;
  int64_t count() const noexcept;
  AttentionCall at(int64_t index) const noexcept;
};

/// The arguments of one call, with the memory for its queries.
struct QueryList {
  kernels::AttentionQuery queries[kernels::kMaxQueries];
  kernels::AttentionArgs fill(const Step& step, const Exec& exec, const Worker& worker,
                              const AttentionCall& call) noexcept;
};

/// Runs the step with every worker doing an equal number of tiles, where whole calls would leave some of them idle and
/// there is enough to do. False: it did nothing. All workers call it with the same arguments.
bool share_tiles(const Step& step, Exec& exec, Worker& worker, const AttentionCalls& calls, int64_t n_calls) noexcept;

}  // namespace stoker::model
