! Ghost layers of a three-dimensional array. Try, with onehop.f90 of the installed headers:
!   gfortran onehop.f90 halo.f90 -lonehop_c -o halo && onehop launch -n 2 ./halo
program halo
  use, intrinsic :: iso_c_binding
  use onehop
  implicit none
  type(onehop_group) :: group
  type(onehop_halo) :: ghosts
  type(onehop_schedule) :: schedule
  type(onehop_plan) :: plan
  real(c_double), allocatable, target :: field(:, :, :)
  real(c_double) :: total
  integer(c_int64_t), dimension(3) :: start, extents, shape
  integer(c_int64_t) :: sent, bytes(1)
  integer(c_int) :: rank, size
  integer :: step

  call check(onehop_group_world(group))
  call check(onehop_group_rank(group, rank))
  call check(onehop_group_size(group, size))

  ! The last dimension is split over the ranks. There is one ghost layer at each side.
  call check(onehop_halo_new([64_c_int64_t, 64_c_int64_t, 128_c_int64_t], [1_c_int, 1_c_int, size], ghosts))
  call check(onehop_halo_set_periodic(ghosts, [.true., .true., .true.]))
  call check(onehop_halo_block(ghosts, rank, start, extents, shape))
  call check(onehop_halo_schedule(ghosts, rank, schedule))
  call check(onehop_schedule_array_bytes(schedule, 0_c_int, rank, bytes(1)))
  call check(onehop_schedule_bytes_sent(schedule, rank, sent))

  allocate (field(0:shape(1) - 1, 0:shape(2) - 1, 0:shape(3) - 1))
  field = rank
  call check(onehop_plan_new(group, schedule, 1_c_int, [c_loc(field)], bytes, plan))  ! prepared once
  do step = 1, 100
    call check(onehop_plan_start(plan))  ! begins the exchange of the faces
    ! Update the interior here; it needs no neighbour.
    call check(onehop_plan_finish(plan))  ! the ghosts are valid
  end do

  ! The ghosts below the first layer hold the number of the rank below.
  print '("rank ", i0, " sends ", i0, " bytes per step and has rank ", i0, " below it")', rank, sent, nint(field(1, 1, 0))
  total = rank
  call check(onehop_allreduce(group, total, ONEHOP_SUM))
  call check(onehop_plan_free(plan))
  call check(onehop_schedule_free(schedule))
  call check(onehop_halo_free(ghosts))
  call check(onehop_group_free(group))
  if (nint(field(1, 1, 0)) /= modulo(rank - 1, size) .or. nint(total) /= size * (size - 1) / 2) error stop 1

contains

  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == ONEHOP_SUCCESS) return
    print '(a)', onehop_error_message()
    error stop 1
  end subroutine
end program
