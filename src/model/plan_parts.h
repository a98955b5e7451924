// What the files that compose plans share.
#pragma once

#include "model/plan.h"

namespace stoker::model {

template <class V>
const V* present(const V& v) {
  return v ? &v : nullptr;
}

inline bool is_gelu(Activation activation) {
  return activation == Activation::kGelu || activation == Activation::kGeluErf;
}

inline const char* name_of(Activation activation) {
  if (activation == Activation::kSitu) return "situ*up";
  if (activation == Activation::kRelu) return "relu*up";
  return is_gelu(activation) ? "gelu*up" : activation == Activation::kSilu ? "silu*up" : "clamped silu*up";
}

inline const char* name_of_plain(Activation activation) {
  return is_gelu(activation) ? "gelu" : activation == Activation::kXielu ? "xielu" : "relu^2";
}

}  // namespace stoker::model
