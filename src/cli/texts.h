// What the subcommands that compute something of many texts share.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "cli/common.h"
#include "engine/embed.h"

namespace stoker::cli {

/// The tokens of each text.
using TokenLists = std::span<const std::vector<int32_t>>;

/// Charges them where they are large.
inline void hold_tokens(engine::Engine& engine, TokenLists lists) {
  uint64_t bytes = 0;
  for (const auto& ids : lists) bytes += ids.capacity() * sizeof(int32_t) + sizeof(ids);
  if (bytes >= kLargeList) engine.hold("tokens", bytes);
}

/// work(options), with a bar for the tokens; Ctrl-C ends it.
template <class Work>
auto with_progress(const char* label, TokenLists lists, engine::EmbedOptions options, Work work) {
  watch_signals();
  uint64_t n = 0;
  for (const auto& ids : lists) n += ids.size();
  Progress progress({.label = label, .total = n, .is_bytes = false});
  int64_t seen = 0;
  options.cancel = &cancelled;
  options.on_progress = [&](int64_t done, int64_t) {
    progress.add(static_cast<uint64_t>(done - std::exchange(seen, done)));
  };
  return work(std::as_const(options));
}

}  // namespace stoker::cli
