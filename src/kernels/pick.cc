#include <algorithm>

#include "base/str_cat.h"
#include "kernels/table.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels {
namespace {

void fill_scalar(Table& table) noexcept {
#ifdef STOKER_SCALAR_MATMUL
  scalar::fill_matmul(table);
#endif
#ifdef STOKER_SCALAR_VECTOR
  scalar::fill_vector(table);
#endif
  (void)table;
}

void fill_avx2(Table& table) noexcept {
#ifdef STOKER_AVX2_MATMUL
  avx2::fill_matmul(table);
#endif
#ifdef STOKER_AVX2_VECTOR
  avx2::fill_vector(table);
#endif
  (void)table;
}

void fill_avx512(Table& table) noexcept {
#ifdef STOKER_AVX512_MATMUL
  avx512::fill_matmul(table);
#endif
#ifdef STOKER_AVX512_VECTOR
  avx512::fill_vector(table);
#endif
  (void)table;
}

bool runs_here(Isa isa) {
  const std::vector<Isa>& isas = available_isas();
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

// Each set starts from the next worse one of its family, so that a set with a few kernels of its own is never slower
// than the one below it. A set without any (avxvnni, amx and neon so far) is that one under another name.
Table make_table(Isa isa) {
  Table table{};
  fill_scalar(table);
  const bool has_avx2_base = isa == Isa::kAvx2 || isa == Isa::kAvxVnni || isa == Isa::kAvx512 || isa == Isa::kAmx;
  if (has_avx2_base && runs_here(Isa::kAvx2)) fill_avx2(table);
  if (isa == Isa::kAvx512 || isa == Isa::kAmx) fill_avx512(table);
  table.isa = isa;
  return table;
}

// Made at the first call and never changed after: threads may read them without a lock.
const std::vector<Table>& all_tables() {
  static const std::vector<Table> tables = [] {
    std::vector<Table> made{make_table(Isa::kScalar)};
    for (Isa isa : available_isas()) {
      if (isa != Isa::kScalar) made.push_back(make_table(isa));
    }
    return made;
  }();
  return tables;
}

}  // namespace

Result<const Table*> table_for(Isa isa) {
  for (const Table& table : all_tables()) {
    if (table.isa == isa) return &table;
  }
  return Error{ErrorCode::kUnsupported,
               str_cat("kernels: no ", isa_name(isa), " on this machine; unset STOKER_ISA to use what it has")};
}

const Table& scalar_table() { return all_tables().front(); }

std::vector<const Table*> runnable_tables() {
  std::vector<const Table*> tables;
  for (const Table& table : all_tables()) tables.push_back(&table);
  return tables;
}

}  // namespace stoker::kernels
