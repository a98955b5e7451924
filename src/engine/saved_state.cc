#include "engine/saved_state.h"

#include <algorithm>

#include "base/check.h"
#include "model/arch/arch.h"
#include "model/identity.h"

namespace stoker::engine {

Result<model::StateOwner> state_owner(const Engine& engine) {
  const model::Model& model = engine.model();
  STOKER_TRY(const uint64_t identity, model::identity_of(engine.file(), model));
  const std::string& name = model.config().name;
  return model::StateOwner{.identity = identity,
                           .name = name.empty() ? std::string(model.config().arch->name) : name,
                           .n_vocab = model.vocab_size()};
}

Result<model::StateFile> open_state(const Engine& engine, const std::string& path) {
  STOKER_TRY(const model::StateOwner owner, state_owner(engine));
  return model::StateFile::open(path, engine.model().plan().kv, owner);
}

Status save_state(const Engine& engine, model::Sequence& sequence, std::span<const int32_t> tokens, OutputFile& file) {
  STOKER_CHECK(!tokens.empty() && sequence.length() <= static_cast<int64_t>(tokens.size()));
  const int64_t most = std::min(sequence.length(), static_cast<int64_t>(tokens.size()) - 1);
  STOKER_TRY_STATUS(sequence.truncate(sequence.cut_point(most)));
  STOKER_TRY(const model::StateOwner owner, state_owner(engine));
  STOKER_TRY_STATUS(model::write_state(sequence, tokens, owner, file));
  return file.commit();
}

}  // namespace stoker::engine
