#include "model/lookahead_trial.h"

#include <algorithm>

#include "model/experts/read_clock.h"
#include "model/lookahead.h"

namespace stoker::model {

bool LookaheadTrial::begin(int64_t n_rows) {
  started_ns_ = now_ns();
  counts_ = n_rows <= Lookahead::kMostRows;
  if (!counts_) return false;
  if (n_rows != n_rows_) n_rows_ = n_rows, n_tried_ = 0, n_left_ = 0;
  return n_left_ > 0 ? guess_ : n_tried_ % 2 == 1;
}

void LookaheadTrial::end() { end(now_ns() - started_ns_); }

void LookaheadTrial::end(uint64_t ns) {
  if (!counts_) return;
  if (n_left_ > 0) {
    --n_left_;
    return;
  }
  times_[n_tried_ % 2][n_tried_ / 2] = ns;
  if (++n_tried_ < 2 * kRounds) return;
  for (auto& times : times_) std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  const auto median = [&](size_t guessing) { return static_cast<double>(times_[guessing][kRounds / 2]); };
  guess_ = median(1) <= kWorth * median(0);
  n_tried_ = 0;
  n_left_ = kCalls;
}

}  // namespace stoker::model
