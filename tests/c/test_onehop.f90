! The Fortran module on any number of ranks, against sums over the sources of all ranks, which every rank knows.
! With USE_MPI (of the preprocessor) the ranks are those of a communicator, which mpi_number.c names.
program test_onehop
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real32, real64
  use onehop
  implicit none
  type(onehop_group) :: group, part
  integer(c_int) :: rank, size_of_group, root
  integer :: failures = 0, i
  integer(c_int64_t), allocatable :: counts(:)
#ifdef USE_MPI
  interface
    integer(c_int) function start_mpi(null) bind(c)
      import
      integer(c_int), intent(inout) :: null
    end function
    subroutine end_mpi() bind(c)
    end subroutine
  end interface
  integer(c_int) :: world, null
  world = start_mpi(null)
  call good(onehop_group_from_mpi(world, group), "from_mpi")
  call check(onehop_group_from_mpi(null, part) == ONEHOP_BAD_INPUT, "from MPI_COMM_NULL")
#else
  call good(onehop_group_world(group), "world")
#endif
  call good(onehop_group_rank(group, rank), "rank")
  call good(onehop_group_size(group, size_of_group), "size")
  root = size_of_group - 1
  allocate (counts(size_of_group))
  counts = [(i, i=1, size_of_group)]
  call check(len(onehop_version()) >= 5, "version")
  call reductions()
  call movement()
  call messages()
  call halo()
  call errors()
  call good(onehop_group_split(group, 0_c_int, -rank, part), "split")
  call good(onehop_group_rank(part, i), "rank of the part")
  call check(i == root - rank, "order of the part")
  call good(onehop_group_free(part), "free")
  call good(onehop_group_free(group), "free")
#ifdef USE_MPI
  call end_mpi()
#endif
  if (failures > 0) error stop 1
  print '("rank ", i0, " of ", i0, " is right")', rank, size_of_group

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (condition) return
    failures = failures + 1
    write (error_unit, '("rank ", i0, ": ", a, "; last error: ", a)') rank, what, onehop_error_message()
  end subroutine

  subroutine good(code, what)
    integer(c_int), intent(in) :: code
    character(len=*), intent(in) :: what
    call check(code == ONEHOP_SUCCESS, what)
  end subroutine

  ! A call that fails as bad input with a text that has these words.
  subroutine bad(code, words)
    integer(c_int), intent(in) :: code
    character(len=*), intent(in) :: words
    call check(code == ONEHOP_BAD_INPUT .and. index(onehop_error_message(), words) > 0, words)
  end subroutine

  pure integer function number(of, i)
    integer, intent(in) :: of, i
    number = modulo(7 * i + 3 * of, 5) - 1
  end function

  subroutine reductions()
    integer(int32) :: a(2, 3)
    integer(int64) :: b(6), longest(6)
    real(real32) :: c(6), scalar
    real(real64) :: d(2, 3, 2), wide(4, 6)
    complex(real32) :: e(3)
    complex(real64) :: f(3), factor
    integer :: r, bits

    a = reshape([(number(rank, i), i=1, 6)], [2, 3])
    call good(onehop_allreduce(group, a, ONEHOP_SUM), "sum of int32")
    call check(all(a == reshape([(sum([(number(r, i), r=0, root)]), i=1, 6)], [2, 3])), "sum of int32")
    b = [(number(rank, i), i=1, 6)]
    call good(onehop_allreduce(group, b, ONEHOP_MAX), "max of int64")
    longest = [(maxval([(number(r, i), r=0, root)]), i=1, 6)]
    call check(all(b == longest), "max of int64")
    b = 2_int64**rank
    call good(onehop_scan(group, b, ONEHOP_BITWISE_OR), "scan")
    call check(all(b == 2_int64**(rank + 1) - 1), "scan")
    b = 2_int64**rank
    call good(onehop_exscan(group, b, ONEHOP_BITWISE_XOR), "exscan")
    call check(all(b == 2_int64**rank - 1), "exscan")
    c = real(rank)
    call good(onehop_allreduce(group, c, ONEHOP_MEAN), "mean of real32")
    call check(all(c == real(root) / 2), "mean of real32")
    scalar = real(rank + 1)
    call good(onehop_allreduce(group, scalar, ONEHOP_PROD), "a scalar")
    call check(scalar == product([(real(r + 1), r=0, root)]), "a scalar")
    d = rank
    call good(onehop_reduce(group, d, ONEHOP_SUM, root), "reduce of rank 3")
    call check(all(d == merge(size_of_group * root / 2, int(rank), rank == root)), "reduce of rank 3")
    wide = rank
    call good(onehop_allreduce(group, wide(2:4:2, 1:6:5), ONEHOP_MIN), "an array with gaps")
    call check(all(wide(2:4:2, 1:6:5) == 0) .and. all(wide(1:3:2, :) == rank) .and. all(wide(:, 2:5) == rank), "gaps")
    e = cmplx(rank, 1, real32)
    call good(onehop_allreduce(group, e, ONEHOP_SUM), "sum of complex")
    call check(all(e == cmplx(size_of_group * root / 2, size_of_group, real32)), "sum of complex")
    f = cmplx(rank, 1, real64)
    factor = 1
    do r = 0, root
      factor = factor * cmplx(r, 1, real64)
    end do
    call good(onehop_allreduce(group, f, ONEHOP_PROD), "product of complex")
    call check(all(f == factor), "product of complex")
    bits = count([(number(int(rank), i) /= 0, i=1, 6)])
    a = bits
    call good(onehop_allreduce(group, a, ONEHOP_LOGICAL_AND), "and")
    call check(all(a == merge(1, 0, bits /= 0)), "and")
  end subroutine

  ! Rank r has r + 1 numbers r.
  subroutine movement()
    real(real64), allocatable :: mine(:), all_of(:), wanted(:), back(:)
    integer(int32) :: pairs(2, 0:root), swapped(2, 0:root), block(2)
    integer :: r
    mine = [(real(rank, real64), i=0, rank)]
    wanted = [((real(r, real64), i=0, r), r=0, root)]
    allocate (all_of(size(wanted)), back(size(mine)), source=-1.0_real64)
    call good(onehop_allgather(group, mine, all_of, counts), "allgather")
    call check(all(all_of == wanted), "allgather")
    all_of = -1
    call good(onehop_gather(group, mine, all_of, root, counts), "gather")
    call check(all(all_of == merge(wanted, -1.0_real64, rank == root)), "gather")
    call good(onehop_scatter(group, all_of, back, root, counts), "scatter")
    call check(all(back == mine), "scatter")
    call good(onehop_broadcast(group, mine(1:1), root), "broadcast")
    call check(mine(1) == root, "broadcast")
    pairs(1, :) = rank
    pairs(2, :) = [(r, r=0, root)]
    call good(onehop_alltoall(group, pairs, swapped), "alltoall")
    call check(all(swapped(1, :) == pairs(2, :)) .and. all(swapped(2, :) == rank), "alltoall")
    ! Block r of what all send has r + 1 numbers r, so that this rank gets its own number.
    back = [(-1.0_real64, i=1, (rank + 1) * size_of_group)]
    call good(onehop_alltoall(group, wanted, back, counts, [(int(rank + 1, c_int64_t), r=0, root)]), "alltoall")
    call check(all(back == rank), "alltoall of unequal blocks")
    call good(onehop_reduce_scatter(group, pairs, block, ONEHOP_SUM), "reduce_scatter")
    call check(all(block == [size_of_group * root / 2, size_of_group * rank]), "reduce_scatter")
    call good(onehop_allgather(group, block, swapped), "equal blocks")
    call check(all(swapped(2, :) == size_of_group * pairs(2, :)), "equal blocks")
  end subroutine

  subroutine messages()
    complex(real32), allocatable, target :: sent(:), found(:)
    type(onehop_request) :: request
    integer(c_int) :: next, sender, done
    next = modulo(rank + 1, size_of_group)
    sent = [(cmplx(rank, i, real32), i=1, 70000)]
    allocate (found(70000), source=(0.0, 0.0))
    call good(onehop_isend(group, sent, next, 3_c_int64_t, request), "isend")
    call good(onehop_receive(group, found, modulo(rank - 1, size_of_group), 3_c_int64_t, sender), "receive")
    call check(sender == modulo(rank - 1, size_of_group) .and. all(real(found) == sender) .and. &
      aimag(found(70000)) == 70000, "receive")
    call good(onehop_wait(request), "wait")
    call good(onehop_isend(group, sent(1:2), next, 0_c_int64_t, request), "isend")
    done = 0
    do while (done == 0)
      call good(onehop_test(request, done), "test")
    end do
    call good(onehop_receive(group, found(5:6), modulo(rank - 1, size_of_group), 0_c_int64_t), "receive")
    call good(onehop_send(group, sent(1:1), rank, 1_c_int64_t), "send")
    call good(onehop_receive(group, found(1:1), rank, 1_c_int64_t), "receive")
    call check(real(found(1)) == rank .and. aimag(found(6)) == 2, "short messages")
  end subroutine

  ! The second dimension is split, with one ghost layer below; the field has rank 2, its plan runs twice.
  subroutine halo()
    type(onehop_halo) :: spec
    type(onehop_schedule) :: schedule
    type(onehop_plan) :: plan
    real(real64), target :: field(5, 0:3)
    integer(c_int64_t) :: start(2), extents(2), shape(2), bytes(1), sent
    integer(c_int) :: complete
    call good(onehop_halo_new([5_c_int64_t, 3_c_int64_t * size_of_group], [1_c_int, size_of_group], spec), "halo")
    call good(onehop_halo_set_widths(spec, [0_c_int64_t, 1_c_int64_t], [0_c_int64_t, 0_c_int64_t]), "widths")
    call good(onehop_halo_set_periodic(spec, [.false., .true.]), "periodic")
    call good(onehop_halo_set_corners(spec, 0_c_int), "corners")
    call good(onehop_halo_set_fields(spec, 1_c_int, [8_c_int64_t]), "fields")
    call good(onehop_halo_block(spec, rank, start, extents, shape), "block")
    call check(all(start == [0, 3 * rank]) .and. all(extents == [5, 3]) .and. all(shape == [5, 4]), "block")
    call good(onehop_halo_schedule(spec, rank, schedule), "schedule")
    call good(onehop_schedule_array_bytes(schedule, 0_c_int, rank, bytes(1)), "bytes")
    call good(onehop_schedule_bytes_sent(schedule, rank, sent), "bytes")
    call check(bytes(1) == 160 .and. sent == merge(40, 0, size_of_group > 1), "bytes")
    field = reshape([(100.0_real64 * rank + i, i=0, 19)], [5, 4])
    call good(onehop_plan_new(group, schedule, 1_c_int, [c_loc(field)], bytes, plan), "plan")
    call good(onehop_plan_run(plan), "run")
    call check(all(field(:, 0) == [(100 * modulo(rank - 1, size_of_group) + 15 + i, i=0, 4)]), "ghosts")
    call good(onehop_plan_start(plan), "start")
    complete = 0
    do while (complete == 0)
      call good(onehop_plan_test(plan, complete), "test")
    end do
    call good(onehop_plan_finish(plan), "finish")
    call good(onehop_plan_free(plan), "free")
    call good(onehop_schedule_free(schedule), "free")
    call good(onehop_halo_free(spec), "free")
    call good(onehop_schedule_permute_bits(2_c_int, 2_c_int, [1_c_int, 0_c_int], 8_c_int64_t, -1_c_int, schedule), "b")
    call good(onehop_schedule_free(schedule), "free")
    call good(onehop_schedule_broadcast(size_of_group, 4_c_int64_t, 8_c_int64_t, root, -1_c_int, schedule), "broadcast")
    call good(onehop_schedule_free(schedule), "free")
    call good(onehop_schedule_allgather(size_of_group, 4_c_int64_t, 8_c_int64_t, -1_c_int, schedule), "allgather")
    call good(onehop_schedule_free(schedule), "free")
    call good(onehop_schedule_allreduce(size_of_group, 4_c_int64_t, ONEHOP_DOUBLE, ONEHOP_SUM, rank, schedule), "sum")
    call good(onehop_schedule_free(schedule), "free")
    call good(onehop_schedule_reduce_scatter(size_of_group, 4_c_int64_t, ONEHOP_INT64, ONEHOP_MIN, rank, schedule), "m")
    call good(onehop_schedule_free(schedule), "free")
  end subroutine

  subroutine errors()
    type(onehop_group) :: none
    type(onehop_halo) :: spec
    type(onehop_schedule) :: schedule
    integer(int32) :: array(4), one(1)
    real(real64) :: real_number(1)
    array = 0
    one = 0
    real_number = 0
    call bad(onehop_allreduce(none, array, ONEHOP_SUM), "expected a group")
    call bad(onehop_allreduce(group, real_number, ONEHOP_BITWISE_AND), "there is no bitwise_and of float64")
    call bad(onehop_broadcast(group, array, size_of_group), "root")
    call bad(onehop_allgather(group, one, array(1:0)), "expected a length of")
    call bad(onehop_gather(group, one, array, -1_c_int), "root")
    call bad(onehop_halo_new([1_c_int64_t, 2_c_int64_t], [1_c_int], spec), "expected a length of 2, found 1")
    call bad(onehop_schedule_from_json("{", schedule), "onehop_schedule_from_json")
    if (size_of_group > 1) call check(onehop_allreduce(group, array(1:1 + min(rank, 1)), ONEHOP_SUM) == ONEHOP_MISMATCH, &
      "lengths that differ")
  end subroutine
end program
