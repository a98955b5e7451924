#include "base/cpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/cpu_detect.h"
#include "base/file.h"
#include "base/str_cat.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"scalar", "avx2", "avxvnni", "avx512", "amx", "neon", "neon-i8mm"};

bool has(uint64_t word, int bit) { return (word >> bit & 1) != 0; }
bool has_all(uint64_t word, uint64_t mask) { return (word & mask) == mask; }

std::string names_of(const std::vector<Isa>& isas) {
  std::string out;
  for (Isa isa : isas) out += str_cat(out.empty() ? "" : " ", isa_name(isa));
  return out;
}

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

std::vector<Isa> isas_of(const X86Facts& facts) {
  std::vector<Isa> out = {Isa::kScalar};
  constexpr uint64_t kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000;  // XCR0: XMM+YMM; opmask and both ZMM halves; AMX
  const bool avx2 = has_all(facts.xcr0, kYmm) && has(facts.leaf1_ecx, 28) /* AVX */ &&
                    has(facts.leaf1_ecx, 12) /* FMA */ && has(facts.leaf1_ecx, 29) /* F16C */ &&
                    has(facts.leaf7_ebx, 5) /* AVX2 */;
  if (!avx2) return out;
  out.push_back(Isa::kAvx2);
  if (has(facts.leaf7_1_eax, 4)) out.push_back(Isa::kAvxVnni);
  const bool avx512 = has_all(facts.xcr0, kZmm) && has(facts.leaf7_ebx, 16) /* F */ &&
                      has(facts.leaf7_ebx, 17) /* DQ */ && has(facts.leaf7_ebx, 30) /* BW */ &&
                      has(facts.leaf7_ebx, 31) /* VL */ && has(facts.leaf7_ecx, 11) /* VNNI */;
  if (!avx512) return out;
  out.push_back(Isa::kAvx512);
  const bool amx = has_all(facts.xcr0, kTiles) && has(facts.leaf7_edx, 24) /* TILE */ &&
                   has(facts.leaf7_edx, 25) /* INT8 */ && has(facts.leaf7_edx, 22) /* BF16 */ && facts.amx_allowed;
  if (amx) out.push_back(Isa::kAmx);
  return out;
}

std::vector<Isa> isas_of(const ArmFacts& facts) {
  std::vector<Isa> out = {Isa::kScalar};
  if (!has(facts.hwcap, 1) /* ASIMD */ || !has(facts.hwcap, 20) /* ASIMDDP */) return out;
  out.push_back(Isa::kNeon);
  if (has(facts.hwcap2, 13) /* I8MM */) out.push_back(Isa::kNeonI8mm);
  return out;
}

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> isas = detect_isas();
  return isas;
}

Result<Isa> pick_isa() {
  const std::vector<Isa>& isas = available_isas();
  const char* wanted = std::getenv("STOKER_ISA");
  if (wanted == nullptr || *wanted == '\0') return isas.back();
  const auto name = std::find(kNames.begin(), kNames.end(), std::string_view(wanted));
  if (name == kNames.end()) {
    return Error{ErrorCode::kInvalidArgument, str_cat("STOKER_ISA=", quoted(wanted),
                                                      " names no instruction set; this machine has: ", names_of(isas))};
  }
  const auto isa = static_cast<Isa>(name - kNames.begin());
  if (std::find(isas.begin(), isas.end(), isa) == isas.end()) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("STOKER_ISA=", wanted, " is not available here; this machine has: ", names_of(isas))};
  }
  return isa;
}

std::string cpu_model() {
  const Result<std::string> text = read_text("/proc/cpuinfo", 64u << 20);
  if (!text) return "unknown";
  // x86 has "model name"; ARM kernels often give numbers only, of which the part tells the core.
  for (std::string_view key : {"model name", "Model", "CPU part"}) {
    const size_t at = ("\n" + *text).find(str_cat("\n", key));
    if (at == std::string::npos) continue;
    const size_t end = text->find('\n', at);
    const std::string line = text->substr(at, end == std::string::npos ? end : end - at);
    const size_t value = line.find(": ");
    if (value == std::string::npos) continue;
    return key == "CPU part" ? str_cat("ARM part ", line.substr(value + 2)) : line.substr(value + 2);
  }
  return "unknown";
}

}  // namespace stoker
