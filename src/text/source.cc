#include "text/source.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "base/str_cat.h"

namespace stoker::text {
namespace {

struct RoleKey {
  Role role;
  std::string_view key;
};
// The deprecated names come after the current ones, which win. BERT's first token goes by either name. "seperator" is
// how the format spells it.
constexpr RoleKey kRoleKeys[] = {
    {Role::kBos, "bos_token_id"},           {Role::kEos, "eos_token_id"},
    {Role::kUnknown, "unknown_token_id"},   {Role::kSeparator, "seperator_token_id"},
    {Role::kPadding, "padding_token_id"},   {Role::kMask, "mask_token_id"},
    {Role::kEot, "eot_token_id"},           {Role::kEom, "eom_token_id"},
    {Role::kFimPrefix, "fim_pre_token_id"}, {Role::kFimSuffix, "fim_suf_token_id"},
    {Role::kFimMiddle, "fim_mid_token_id"}, {Role::kFimPad, "fim_pad_token_id"},
    {Role::kFimRepo, "fim_rep_token_id"},   {Role::kFimSeparator, "fim_sep_token_id"},
    {Role::kBos, "cls_token_id"},           {Role::kFimPrefix, "prefix_token_id"},
    {Role::kFimSuffix, "suffix_token_id"},  {Role::kFimMiddle, "middle_token_id"},
};

std::string key_name(std::string_view key) { return str_cat("tokenizer.ggml.", key); }

Error corrupt(std::string_view key, std::string_view what) {
  return Error{ErrorCode::kCorrupt, str_cat(key_name(key), ": ", what)};
}

std::string lower_ascii(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

Result<std::span<const std::string>> read_strings(const gguf::File& file, std::string_view key) {
  STOKER_TRY(const gguf::Array* array, file.array(key_name(key)));
  if (array == nullptr) return std::span<const std::string>{};
  if (array->element != gguf::ValueType::kString && array->size() > 0)
    return corrupt(key, str_cat("an array of ", gguf::value_type_name(array->element), ", wanted strings"));
  return std::span<const std::string>(array->strings);
}

// An array with at least one number per token; null when the key is absent.
Result<const gguf::Array*> read_numbers(const gguf::File& file, std::string_view key, size_t n_tokens) {
  STOKER_TRY(const gguf::Array* array, file.array(key_name(key)));
  if (array == nullptr) return array;
  size_t size = array->ints.size() + array->floats.size();
  if (size < n_tokens)
    return corrupt(key, str_cat(size, " numbers for ", n_tokens, " tokens; the file is damaged or badly converted"));
  return array;
}

Status read_kinds(const gguf::File& file, Source& out) {
  STOKER_TRY(const gguf::Array* array, read_numbers(file, "token_type", out.tokens.size()));
  out.kinds.assign(out.tokens.size(), TokenKind::kNormal);
  if (array == nullptr) return Ok{};
  if (!array->floats.empty()) return corrupt("token_type", "floats, wanted integers");
  for (size_t i = 0; i < out.kinds.size(); ++i) {
    int64_t type = array->ints[i];
    out.kinds[i] = type >= 0 && type <= 6 ? static_cast<TokenKind>(type) : TokenKind::kUndefined;
  }
  return Ok{};
}

// The same for integer scores, which a float would round.
uint32_t integer_rank(int64_t score) {
  return static_cast<uint32_t>(std::numeric_limits<int32_t>::max() -
                               std::clamp<int64_t>(score, -0x7FFFFFFE, 0x7FFFFFFF));
}

Status read_scores(const gguf::File& file, Source& out) {
  STOKER_TRY(const gguf::Array* array, read_numbers(file, "scores", out.tokens.size()));
  out.score_ranks.assign(out.tokens.size(), score_rank(0));
  if (array == nullptr) return Ok{};
  out.scores = array;
  for (size_t i = 0; i < out.score_ranks.size(); ++i)
    out.score_ranks[i] = array->floats.empty() ? integer_rank(array->ints[i]) : score_rank(array->floats[i]);
  return Ok{};
}

Status read_roles(const gguf::File& file, Source& out) {
  for (const auto& [role, key] : kRoleKeys) {
    if (key == "cls_token_id" && out.model != "bert") continue;
    STOKER_TRY(std::optional<int64_t> id, file.integer(key_name(key)));
    std::optional<TokenId>& slot = out.roles[static_cast<size_t>(role)];
    if (!id.has_value() || slot.has_value()) continue;
    bool inside = *id >= 0 && std::cmp_less(*id, out.tokens.size());
    // Minus one, as a u32 or not, is how some converters say "none": nothing to tell.
    if (!inside && *id != -1 && *id != 0xFFFFFFFF)
      out.notes.push_back(str_cat(key_name(key), " is ", *id, ", the vocabulary has ", out.tokens.size(), ": ignored"));
    slot = inside ? static_cast<TokenId>(*id) : kNoToken;
  }
  return Ok{};
}

Status read_charsmap(const gguf::File& file, Source& out) {
  STOKER_TRY(const gguf::Array* array, file.array(key_name("precompiled_charsmap")));
  if (array == nullptr) return Ok{};
  if (array->size() != array->ints.size()) return corrupt("precompiled_charsmap", "wanted bytes");
  out.charsmap = array->ints;
  return Ok{};
}

Status read_suppressed(const gguf::File& file, Source& out) {
  STOKER_TRY(const gguf::Array* array, file.array(key_name("suppress_tokens")));
  if (array == nullptr) return Ok{};
  if (array->size() != array->ints.size()) return corrupt("suppress_tokens", "wanted integers");
  for (int64_t id : array->ints)
    if (id >= 0 && std::cmp_less(id, out.tokens.size())) out.suppressed.push_back(static_cast<TokenId>(id));
  return Ok{};
}

}  // namespace

uint32_t score_rank(double score) {
  if (std::isnan(score)) return 0xFFFFFFFE;
  // The bits of a float, turned so that they order as the number does; adding 0 makes -0 the same as 0.
  uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(score) + 0.0f);
  uint32_t ascending = bits >> 31 != 0 ? ~bits : bits | 0x80000000;
  return 0xFFFFFFFF - ascending;
}

Result<Source> read_source(const gguf::File& file) {
  Source out;
  STOKER_TRY(std::optional<std::string> model, file.string(key_name("model")));
  if (!model.has_value() || *model == "none" || *model == "no_vocab")
    return Error{ErrorCode::kNotFound,
                 "the file has no tokenizer (tokenizer.ggml.model is absent or 'none'): give token ids"};
  out.model = *std::move(model);
  STOKER_TRY(out.pre, file.string(key_name("pre")));
  STOKER_TRY(std::optional<std::string> architecture, file.string("general.architecture"));
  STOKER_TRY(std::optional<std::string> name, file.string("general.name"));
  out.architecture = lower_ascii(architecture.value_or(""));
  out.general_name = lower_ascii(name.value_or(""));
  STOKER_TRY(out.tokens, read_strings(file, "tokens"));
  if (out.tokens.empty()) return corrupt("tokens", "absent or empty, and the file names a tokenizer");
  if (!checked_cast<TokenId>(out.tokens.size()).has_value()) return corrupt("tokens", "more than 2^31 - 1 entries");
  size_t n_bytes = 0;
  for (const std::string& token : out.tokens) n_bytes += token.size() + 24;  // An empty one gets a text.
  STOKER_TRY(out.merges, read_strings(file, "merges"));
  for (const std::string& merge : out.merges) n_bytes += 3 * merge.size();  // Each can add three texts.
  constexpr size_t kMostBytes = 0xFFFFFFFF, kMostSymbols = 0x7FFFFFFF;
  if (n_bytes > kMostBytes || out.tokens.size() + 3 * out.merges.size() + 256 > kMostSymbols)
    return Error{ErrorCode::kUnsupported, str_cat("tokenizer.ggml.tokens and merges: ", out.tokens.size(),
                                                  " tokens and ", out.merges.size(), " merges are too many")};
  out.has_merges = file.find(key_name("merges")) != nullptr;
  STOKER_TRY_STATUS(read_kinds(file, out));
  STOKER_TRY_STATUS(read_scores(file, out));
  STOKER_TRY_STATUS(read_roles(file, out));
  STOKER_TRY_STATUS(read_suppressed(file, out));
  STOKER_TRY(out.add_bos, file.boolean(key_name("add_bos_token")));
  STOKER_TRY(out.add_eos, file.boolean(key_name("add_eos_token")));
  STOKER_TRY(out.add_sep, file.boolean(key_name("add_sep_token")));
  STOKER_TRY(out.add_space_prefix, file.boolean(key_name("add_space_prefix")));
  STOKER_TRY(out.lowercase, file.boolean(key_name("normalizer.lowercase")));
  STOKER_TRY(out.strip_accents, file.boolean(key_name("normalizer.strip_accents")));
  STOKER_TRY(std::optional<bool> merged, file.boolean(key_name("remove_extra_whitespaces")));
  out.remove_extra_whitespaces = merged.value_or(false);
  STOKER_TRY_STATUS(read_charsmap(file, out));
  return out;
}

}  // namespace stoker::text
