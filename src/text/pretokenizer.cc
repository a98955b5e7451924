#include "text/pretokenizer.h"

#include "text/lists.h"

namespace stoker::text {
namespace {

constexpr Pretokenizer plain(std::string_view name, std::span<const Pass> passes) {
  return {.name = name, .passes = passes};
}
constexpr Pretokenizer whole_pieces(std::string_view name, std::span<const Pass> passes) {
  return {.name = name, .passes = passes, .ignore_merges = true};
}
constexpr Pretokenizer with_bos(std::string_view name, std::span<const Pass> passes) {
  return {.name = name, .passes = passes, .add_bos = true};
}
constexpr Pretokenizer with_separator(std::string_view name) {
  return {.name = name, .passes = lists::kR4, .add_separator = true};
}
constexpr Pretokenizer llama3(std::string_view name) {
  return {.name = name, .passes = lists::kR1, .ignore_merges = true, .add_bos = true};
}
constexpr Pretokenizer glm(std::string_view name, bool ignore_merges) {
  return {.name = name, .passes = lists::kR1, .ignore_merges = ignore_merges, .no_default_bos = true};
}
constexpr Pretokenizer gemma4(std::string_view name) {
  return {.name = name, .passes = lists::kR19, .plain_utf8 = true, .whole_newlines = true, .force_bos = true};
}

constexpr Pretokenizer kAllNames[] = {
    llama3("llama-bpe"),
    llama3("llama3"),
    llama3("llama-v3"),
    llama3("falcon3"),
    llama3("falcon-h1"),
    llama3("pixtral"),
    llama3("midm-2.0"),
    llama3("lfm2"),
    llama3("jina-v5-nano"),
    glm("glm4", true),
    glm("glm5", true),
    glm("chatglm-bpe", false),
    plain("dbrx", lists::kR1),
    plain("smaug-bpe", lists::kR1),
    plain("qwen2", lists::kR2),
    plain("deepseek-r1-qwen", lists::kR2),
    plain("kormo", lists::kR2),
    plain("f2llmv2", lists::kR2),
    plain("megrez", lists::kR2),
    plain("stablelm2", lists::kR2),
    plain("hunyuan", lists::kR2),
    plain("solar-open", lists::kR2),
    plain("grok-2", lists::kR2),
    plain("openpangu", lists::kR2),
    plain("qwen35", lists::kR3),
    plain("gpt-2", lists::kR4),
    plain("phi-2", lists::kR4),
    plain("jina-es", lists::kR4),
    plain("jina-de", lists::kR4),
    with_separator("jina-v1-en"),
    plain("jina-v2-es", lists::kR4),
    plain("jina-v2-de", lists::kR4),
    with_separator("jina-v2-code"),
    with_separator("roberta-bpe"),
    plain("gigachat", lists::kR4),
    plain("a.x-4.0", lists::kR4),
    plain("mellum", lists::kR4),
    plain("modern-bert", lists::kR4),
    plain("exaone4", lists::kR4),
    plain("mpt", lists::kR4),
    plain("olmo", lists::kR4),
    plain("jais", lists::kR4),
    plain("trillion", lists::kR4),
    plain("granite-docling", lists::kR4),
    plain("starcoder", lists::kR5),
    plain("refact", lists::kR5),
    plain("command-r", lists::kR5),
    plain("smollm", lists::kR5),
    plain("codeshell", lists::kR5),
    plain("exaone", lists::kR5),
    plain("minerva-7b", lists::kR5),
    plain("mellum2", lists::kR5),
    plain("cohere2_moe", lists::kR5),
    plain("default", lists::kR6),
    plain("falcon", lists::kR7),
    plain("deepseek-llm", lists::kR8),
    plain("deepseek-coder", lists::kR9),
    plain("deepseek-v3", lists::kR10),
    plain("hunyuan-dense", lists::kR10),
    plain("hy_v4", lists::kR10),
    plain("joyai-llm", lists::kR10),
    {.name = "tekken", .passes = lists::kR11, .ignore_merges = true, .add_bos = true},
    plain("gpt-4o", lists::kR12),
    plain("llama4", lists::kR12),
    plain("kanana2", lists::kR12),
    plain("talkie", lists::kR12),
    plain("minimax-m2", lists::kR12),
    plain("kimi-k2", lists::kR13),
    plain("bloom", lists::kR14),
    plain("poro-chat", lists::kR14),
    plain("gpt3-finnish", lists::kR14),
    plain("viking", lists::kR15),
    plain("superbpe", lists::kR16),
    plain("bailingmoe", lists::kR17),
    plain("bailingmoe2", lists::kR17),
    plain("llada-moe", lists::kR17),
    plain("seed-coder", lists::kR18),
    gemma4("gemma4"),
    gemma4("granite-embed-multi-311m"),
    {.name = "sarvam-moe", .passes = lists::kR19, .plain_utf8 = true},
    with_bos("chameleon", lists::kR20),
    whole_pieces("minicpm5", lists::kR21),
    plain("exaone-moe", lists::kR22),
    plain("laguna", lists::kR23),
    plain("jais-2", lists::kR24),
    whole_pieces("youtu", lists::kR25),
    plain("tiny_aya", lists::kR26),
    plain("cohere2moe", lists::kR26),
    whole_pieces("granite-embed-multi-97m", lists::kR27),
    plain("afmoe", lists::kR28),
    {.name = "whitespace", .passes = lists::kR29, .plain_utf8 = true, .drop_space = true},
    plain("spark2_5", lists::kR30),
    plain("ufakzeka", lists::kR31),
};

}  // namespace

std::span<const Pretokenizer> all_pretokenizers() { return kAllNames; }

const Pretokenizer* find_pretokenizer(std::string_view name) {
  for (const Pretokenizer& entry : kAllNames)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace stoker::text
