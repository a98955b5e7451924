#include "model/rope.h"

#include <algorithm>

#include "base/math.h"
#include "base/str_cat.h"

namespace stoker::model {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// Which pairs YaRN leaves alone (1) and which it interpolates (0), linear in between. Source: arXiv:2309.00071, with
/// the bounds rounded outwards as in the usual implementations, where the model was not trained without (gpt-oss).
std::vector<double> yarn_ramp(const ModelConfig& config, double base) {
  const auto dims = static_cast<double>(config.rope_dims);
  const auto corrected = [&](double beta) {
    const double turns = static_cast<double>(config.rope_original_context) / (2 * kPi * beta);
    return dims * math::log(turns) / (2 * math::log(base));
  };
  double low = corrected(static_cast<double>(config.yarn_beta_fast));
  double high = corrected(static_cast<double>(config.yarn_beta_slow));
  if (config.yarn_truncate) low = __builtin_floor(low), high = __builtin_ceil(high);
  low = std::max(0.0, low), high = std::min(dims - 1, high);
  std::vector<double> ramp;
  for (int64_t i = 0; i < config.rope_dims / 2; ++i) {
    const double t = (static_cast<double>(i) - low) / std::max(0.001, high - low);
    ramp.push_back(1 - std::clamp(t, 0.0, 1.0));
  }
  return ramp;
}

Status apply_factors(const Vector& factors, RopeTable& table) {
  for (size_t i = 0; i < table.frequency.size(); ++i) {
    const float factor = factors.data[i];
    if (!(factor > 0) || factor > 1e30f) {
      return Error{ErrorCode::kCorrupt,
                   str_cat("tensor ", factors.name, ": entry ", i, " is ", factor, ", wanted a positive number")};
    }
    table.frequency[i] /= static_cast<double>(factor);
  }
  return Ok{};
}

/// Positions of several axes: time, height and width take turns, pair by pair, as far as their sections go; in text all
/// three are the position. What is left has an axis of its own, which is 0.
void leave_other_axes(const std::vector<int64_t>& sections, RopeTable& table) {
  int64_t n = 0;
  for (const int64_t size : sections) n += size;
  for (size_t i = 0; i < table.frequency.size(); ++i) {
    const int64_t in_turn = static_cast<int64_t>(i) % n;
    if (in_turn >= 3 * sections[static_cast<size_t>(in_turn % 3)]) table.frequency[i] = 0;
  }
}

}  // namespace

void RopeTable::at(int64_t position, float* cos, float* sin) const noexcept {
  const auto p = static_cast<double>(position);
  for (size_t i = 0; i < frequency.size(); ++i) {
    const math::SinCos angle = math::sincos(p * frequency[i]);
    cos[i] = static_cast<float>(magnitude * angle.cos);
    sin[i] = static_cast<float>(magnitude * angle.sin);
  }
}

Result<RopeTable> make_rope(const ModelConfig& config, const Weights& weights, bool sliding, int64_t context) {
  RopeTable table;
  const auto base = static_cast<double>(sliding ? config.rope_base_swa : config.rope_base);
  const int64_t n_dims = config.rope_dims_of(sliding);
  const auto dims = static_cast<double>(n_dims);
  for (int64_t i = 0; i < n_dims / 2; ++i) {
    table.frequency.push_back(1 / math::pow(base, 2 * static_cast<double>(i) / dims));
  }
  if (!config.rope_sections.empty()) leave_other_axes(config.rope_sections, table);
  if (sliding && config.rope_swa_plain) return table;

  table.magnitude = static_cast<double>(config.rope_attn_factor);
  if (weights.rope_factors) {
    STOKER_TRY_STATUS(apply_factors(weights.rope_factors, table));
  } else if (config.rope_scaling == RopeScaling::kLongRope || weights.rope_long || weights.rope_short) {
    const bool is_long = context > config.rope_original_context;
    const Vector& factors = is_long ? weights.rope_long : weights.rope_short;
    if (!factors) {
      return Error{ErrorCode::kCorrupt, str_cat("tensor rope_factors_", is_long ? "long" : "short",
                                                ".weight is missing, long-rope needs it")};
    }
    STOKER_TRY_STATUS(apply_factors(factors, table));
  }
  const auto factor = static_cast<double>(config.rope_factor);
  if (config.rope_scaling == RopeScaling::kLinear) {
    for (double& f : table.frequency) f /= factor;
  } else if (config.rope_scaling == RopeScaling::kYarn) {
    const std::vector<double> keep = yarn_ramp(config, base);
    for (size_t i = 0; i < keep.size(); ++i) table.frequency[i] *= (1 - keep[i]) / factor + keep[i];
    const double log_factor = 0.1 * math::log(factor), taken_back = static_cast<double>(config.yarn_log_multiplier);
    if (config.yarn_magnitude != 0) {
      table.magnitude *= config.yarn_magnitude;
    } else if (factor > 1) {
      table.magnitude *= (log_factor + 1) / (taken_back * log_factor + 1);
    }
  }
  return table;
}

}  // namespace stoker::model
