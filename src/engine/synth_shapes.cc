#include "engine/synth_shapes.h"

#include <string>
#include <vector>

#include "base/str_cat.h"
#include "engine/synth_lists.h"

namespace stoker::engine {

std::span<const SynthShape> synth_shapes() {
  static const std::vector<SynthShape> all = [] {
    std::vector<SynthShape> shapes;
    for (const auto part : {&ShapeList::published, &ShapeList::tiny}) {
      for (const ShapeList* list : {&kDenseShapes, &kMoeShapes, &kLatentShapes, &kHybridShapes}) {
        shapes.insert(shapes.end(), (list->*part).begin(), (list->*part).end());
      }
    }
    return shapes;
  }();
  return all;
}

Result<const SynthShape*> find_synth_shape(std::string_view name) {
  std::string known;
  for (const SynthShape& shape : synth_shapes()) {
    if (shape.name == name) return &shape;
    known += str_cat(known.empty() ? "" : ", ", shape.name);
  }
  return Error{ErrorCode::kInvalidArgument, str_cat("no shape ", quoted(name), "; known are ", known)};
}

}  // namespace stoker::engine
