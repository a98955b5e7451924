// What heads of keys and values and latents have in common on their way into a page.
#pragma once

#include "model/exec.h"

namespace stoker::model {

/// Rotates a head of row `r` by its position.
inline void rotate_head(const AttentionSpec& a, const Exec& exec, int64_t r, float* x) noexcept {
  const auto rope = static_cast<size_t>(a.rope);
  const int64_t at = exec.token(r) * exec.rope_stride;
  a.rotate(x, exec.rope_cos[rope] + at, exec.rope_sin[rope] + at, a.rope_pairs);
}

/// Stores the rows by store(first row, n, position in the tile), which is false when a value is too large or no number:
/// then one by one, to find out whose.
template <class Store>
void store_rows(const Step& step, const Exec& exec, const TileRows& rows, Store&& store) noexcept {
  if (store(rows.row0, rows.n, rows.in_tile)) return;
  for (int i = 0; i < rows.n; ++i) {
    if (!store(rows.row0 + i, 1, rows.in_tile + i)) exec.mark_bad(exec.original_row(rows.row0 + i), step);
  }
}

}  // namespace stoker::model
