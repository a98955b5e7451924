#include "text/known_tokens.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace stoker::text {
namespace {

constexpr std::string_view kSlashS = "</s>";

// In the order in which the first one found wins where the file names no end-of-turn token.
constexpr std::string_view kEotTexts[] = {
    "<|eot_id|>",        "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>",   "<EOT>",      "_<EOT>",  "[EOT]",         "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
    "<end_of_utterance>"};
constexpr std::string_view kEomTexts[] = {"<|eom_id|>"};
constexpr std::string_view kFimPrefixTexts[] = {
    "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>",    "<\uFF5Cfim\u2581begin\uFF5C>",
    "<PRE>",          "\u2581<PRE>",  "<|code_prefix|>", "<|prefix|>"};
constexpr std::string_view kFimSuffixTexts[] = {
    "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",    "<\uFF5Cfim\u2581hole\uFF5C>",
    "<SUF>",          "\u2581<SUF>",  "<|code_suffix|>", "<|suffix|>"};
constexpr std::string_view kFimMiddleTexts[] = {
    "<|fim_middle|>", "<fim-middle>", "<fim_middle>",    "<\uFF5Cfim\u2581end\uFF5C>",
    "<MID>",          "\u2581<MID>",  "<|code_middle|>", "<|middle|>"};
constexpr std::string_view kFimPadTexts[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kFimRepoTexts[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"};
constexpr std::string_view kFimSeparatorTexts[] = {"<|file_sep|>"};

constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|flush|>",
                                          "<|calls|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          kSlashS,
                                          "<|eom_id|>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "[EOT]",
                                          "[EOS]",
                                          "<|end_of_text|>",
                                          "<end_of_utterance>",
                                          "<eos>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
                                          "[e~["};

// Texts with a part in the corrections below only.
constexpr std::string_view kChannelTexts[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};
constexpr std::string_view kPlamoEos = "<|plamo:eos|>";

struct RoleTexts {
  Role role;
  std::span<const std::string_view> texts;
};
constexpr RoleTexts kRoleTexts[] = {{Role::kEot, kEotTexts},
                                    {Role::kEom, kEomTexts},
                                    {Role::kFimPrefix, kFimPrefixTexts},
                                    {Role::kFimSuffix, kFimSuffixTexts},
                                    {Role::kFimMiddle, kFimMiddleTexts},
                                    {Role::kFimPad, kFimPadTexts},
                                    {Role::kFimRepo, kFimRepoTexts},
                                    {Role::kFimSeparator, kFimSeparatorTexts}};

// One walk over the vocabulary that keeps the ids of the texts above; of duplicates the last.
class KnownTokens {
 public:
  explicit KnownTokens(Vocab& vocab) : vocab_(vocab) {
    for (const RoleTexts& entry : kRoleTexts) add(entry.texts);
    add(kEndTexts);
    add(kChannelTexts);
    add(std::span(&kPlamoEos, 1));
    ids_.assign(texts_.size(), kNoToken);
    for (size_t id = 0; id < vocab.size(); ++id) {
      std::string_view piece = vocab.pieces[id];
      // All known texts start with one of these.
      if (piece.size() < 4 || (piece[0] != '<' && piece[0] != '[' && piece[0] != '_' && piece[0] != '\xE2')) continue;
      if (int32_t at = table_.find(texts_, piece); at >= 0) ids_[static_cast<size_t>(at)] = static_cast<TokenId>(id);
    }
  }

  TokenId id(std::string_view text) const { return ids_[static_cast<size_t>(table_.find(texts_, text))]; }
  bool ends(std::string_view text) const { return id(text) != kNoToken && vocab_.ends[static_cast<size_t>(id(text))]; }
  void set_kind(std::string_view text, TokenKind kind) {
    if (id(text) != kNoToken) vocab_.kinds[static_cast<size_t>(id(text))] = kind;
  }
  void no_end(std::string_view text, TokenKind kind) {
    vocab_.ends[static_cast<size_t>(id(text))] = false;
    set_kind(text, kind);
  }

 private:
  void add(std::span<const std::string_view> texts) {
    for (std::string_view text : texts) {
      texts_.add(text);
      table_.insert(texts_, static_cast<int32_t>(texts_.size() - 1));
    }
  }

  Vocab& vocab_;
  Texts texts_;
  TextTable table_;
  std::vector<TokenId> ids_;
};

// The ids that the model's default gives where the file has no key, if they are in the vocabulary.
TokenId default_role(const Source& source, Role role) {
  struct Default {
    std::string_view model;
    Role role;
    TokenId id;
  };
  static constexpr Default kDefaults[] = {
      {"llama", Role::kBos, 1},       {"llama", Role::kEos, 2},    {"llama", Role::kUnknown, 0},
      {"gpt2", Role::kBos, 11},       {"gpt2", Role::kEos, 11},    {"whitespace", Role::kBos, 11},
      {"whitespace", Role::kEos, 11}, {"bert", Role::kBos, 101},   {"bert", Role::kSeparator, 102},
      {"bert", Role::kUnknown, 100},  {"bert", Role::kPadding, 0}, {"bert", Role::kMask, 103},
      {"t5", Role::kEos, 1},          {"t5", Role::kUnknown, 2},   {"t5", Role::kPadding, 0}};
  if (role == Role::kBos && source.no_default_bos) return kNoToken;
  for (const Default& entry : kDefaults) {
    bool there = static_cast<size_t>(entry.id) < source.tokens.size();
    if (entry.model == source.model && entry.role == role && there) return entry.id;
  }
  return kNoToken;
}

void set_roles(const Source& source, KnownTokens& known, Vocab& vocab) {
  for (size_t i = 0; i < kRoles; ++i)
    vocab.roles[i] = source.roles[i].value_or(default_role(source, static_cast<Role>(i)));
  for (const auto& [role, texts] : kRoleTexts) {
    TokenId& slot = vocab.roles[static_cast<size_t>(role)];
    if (slot != kNoToken) continue;
    auto found = std::find_if(texts.begin(), texts.end(), [&](auto text) { return known.id(text) != kNoToken; });
    if (found == texts.end()) continue;
    slot = known.id(*found);
    known.set_kind(*found, TokenKind::kControl);
  }
}

void set_ends(KnownTokens& known, Vocab& vocab) {
  vocab.ends.assign(vocab.size(), false);
  auto end = [&](TokenId id) {
    if (id != kNoToken) vocab.ends[static_cast<size_t>(id)] = true;
  };
  for (Role role : {Role::kFimPad, Role::kFimRepo, Role::kFimSeparator, Role::kEos, Role::kEot, Role::kEom})
    end(vocab.role(role));
  for (std::string_view text : kEndTexts) {
    TokenId id = known.id(text);
    if (id == kNoToken) continue;
    // In some vocabularies "</s>" is the HTML tag, an ordinary token. Elsewhere it is a control token, or the EOS.
    bool ordinary = vocab.kinds[static_cast<size_t>(id)] != TokenKind::kControl && !vocab.ends[static_cast<size_t>(id)];
    if (text == kSlashS && ordinary) continue;
    end(id);
    known.set_kind(text, TokenKind::kControl);
  }
}

// gpt-oss shows its channel tokens and goes on after <|end|>; Gemma 4 and PLaMo do not end at </s>.
void correct_ends(KnownTokens& known) {
  for (std::string_view text : kChannelTexts) known.set_kind(text, TokenKind::kUserDefined);
  bool calls = known.ends("<|call|>") || known.ends("<|calls|>");
  if (known.ends("<|end|>") && calls && (known.ends("<|return|>") || known.ends("<|flush|>")))
    known.no_end("<|end|>", TokenKind::kUserDefined);
  if (known.ends(kSlashS) && (known.ends("<|tool_response>") || known.id(kPlamoEos) != kNoToken))
    known.no_end(kSlashS, TokenKind::kNormal);
}

}  // namespace

void correct_known_tokens(const Source& source, Vocab& vocab) {
  KnownTokens known(vocab);
  set_roles(source, known, vocab);
  set_ends(known, vocab);
  correct_ends(known);
}

}  // namespace stoker::text
